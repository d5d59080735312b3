-- Grants the slot's lease, or says why not. Checks first, in the order of the contract; then SET, which carries its own
-- TTL and is refused as a whole when memory is full or the user may not: in that case nothing has changed.
-- KEYS 5 the job's pause, 6 the borrowed key, if there is one
-- ARGV 5 token, 6 node, 7 ttl, 8 max_attempts, 9 trigger, 10 start of the slot (ms), 11 the largest attempt number,
-- 12 '1': asked for by name although the slot is over, 13 the JSON of the person who asks up to the time (empty: nobody),
-- 14 '1': exclusive, no other slot of the job may be leased
local token, node, ttl, trigger = ARGV[5], ARGV[6], ARGV[7], ARGV[9]
local max, starts, limit = tonumber(ARGV[8]), tonumber(ARGV[10]), tonumber(ARGV[11])
local now = now_ms()
local slot, bad = read_slot()
if bad then return bad end
local mark = slot.mark
local borrowed, endless = read_borrowed(token)
local over = now >= ENDS and ARGV[12] ~= '1'

if mark.state == 'done' then return { 'done', mark.raw } end
local done
done, bad = marker_of_verdict()
if bad then return bad end
if done then return { 'done', done } end
-- Before the window is asked: whoever did not hear of its grant learns of it after the slot's end too, and gives it back.
if mark.state == 'running' and mark.token == token then
  if endless and not over then return endless end
  borrowed = borrowed or { state = 'other' }
  if borrowed.state == 'other' and not over then return { 'held', borrowed_mark(borrowed, now), borrowed.left } end
  hold_borrowed(borrowed, token, node, ttl)
  prolong_mark(mark, ttl)
  if slot.count < mark.attempt then
    -- Its grant broke off after the mark, as the user lost a right in its midst: nobody else may be given the same number.
    redis.call('SET', ATTEMPTS, text(mark.attempt))
    write_run(mark.attempt, token, begun(mark.attempt, token, node, trigger, mark.at))
    keep(now)
    slot.used = math.max(0, mark.attempt - slot.forgiven)
  end
  return { 'claimed', mark.attempt, slot.used, mark.at }
end
-- A grant whose answer was lost and whose lease has lapsed since is the same attempt still.
local again, granted
if mark.state == 'free' then again, granted = unanswered(token, slot) end
if not again then
  if now < starts then return { 'early', starts - now } end
  if over then return { 'closed' } end
  if mark.state == 'running' then return { 'held', mark.raw, mark.left } end
  if slot.used >= max or slot.count >= limit then return { 'exhausted', slot.used } end
  if mark.state == 'backoff' then return { 'backoff', math.max(1, mark.left) } end
  -- A late copy of a request whose run is over: its sender has gone on, and a grant would be nobody's (I5).
  if is_spent(token, slot.count) then return { 'backoff', 0 } end
end

local pause = redis.call('GET', KEYS[5])
if pause then
  local since, till = read_pause(pause)
  if not since then return { 'corrupt', KEYS[5], pause } end
  if till > now and over then return { 'closed' } end
  if till == math.huge then return { 'paused', -1 } end
  if till > now then return { 'paused', till - now } end
end
local running = { ended = {} }
if ARGV[14] == '1' then
  running, bad = read_running(now)
  if bad then return bad end
  if running.other and over then return { 'closed' } end
  if running.other then return { 'blocked', unpack(running.other) } end
end

if endless then return endless end
if borrowed.state == 'other' then return { 'held', borrowed_mark(borrowed, now), borrowed.left } end
hold_borrowed(borrowed, token, node, ttl)
if again then
  write_mark('running', token, node, again, granted, ttl)
  if not slot.stored then redis.call('SET', ATTEMPTS, again) end
  keep(now)
  tell_changed()
  return { 'claimed', again, slot.used, granted }
end
local attempt = slot.count + 1
write_mark('running', token, node, attempt, now, ttl)
for _, key in ipairs(running.ended) do redis.call('HDEL', RUNNING, key) end
if not slot.stored and slot.count > 0 then redis.call('SET', ATTEMPTS, slot.count) end
redis.call('INCR', ATTEMPTS)
write_run(attempt, token, begun(attempt, token, node, trigger, now))
note_borrowed(token)
if ARGV[13] ~= '' then write_audit(ARGV[13], now) end
keep(now)
tell_changed()
return { 'claimed', attempt, math.max(0, attempt - slot.forgiven), now }
