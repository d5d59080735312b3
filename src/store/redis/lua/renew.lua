-- Makes a lease last; sets it again where the key is absent and nothing says that this claim ended or was followed by
-- another (the server restarted empty, or the lease lapsed unseen). Takes nothing from anybody else (I4).
-- KEYS last the borrowed key, if there is one
-- ARGV 5 token, 6 node, 7 attempt, 8 ttl, 9 trigger, 10 claimed at (ms)
local token, node, attempt, ttl, trigger, at = ARGV[5], ARGV[6], tonumber(ARGV[7]), ARGV[8], ARGV[9], tonumber(ARGV[10])
local now = now_ms()
local mark, bad = read_mark(MARK)
if bad then return bad end

-- Whoever has the borrowed key now, with an end or without: this run has it no more.
local borrowed = read_borrowed(token) or { state = 'other', node = 'unknown' }
if mark.state == 'running' and mark.token == token then
  if borrowed.state == 'other' then return { 'lost', borrowed_mark(borrowed, now) } end
  -- A copy of its claim came late, and was granted anew after somebody else had come and gone.
  if mark.attempt ~= attempt and overtaker(attempt, token, at) then return { 'lost' } end
  -- Before the first write: a key of a foreign type stops the script while nothing has changed.
  redis.call('HGET', RUNNING, KEY)
  hold_borrowed(borrowed, token, node, ttl)
  prolong_mark(mark, ttl)
  return { 'renewed' }
end
if mark.state == 'running' then return { 'lost', mark.raw } end
if mark.state == 'done' then return { 'done', mark.raw } end
if mark.state == 'backoff' then return { 'lost' } end
local done
done, bad = marker_of_verdict()
if bad then return bad end
if done then return { 'done', done } end

local slot
slot, bad = read_slot()
if bad then return bad end
if slot.count > attempt or overtaker(attempt, token, at) then return { 'lost' } end
local _, own = find_run(attempt, token)
if own and has_ended(own) then return { 'lost' } end

if borrowed.state == 'other' then return { 'lost', borrowed_mark(borrowed, now) } end
hold_borrowed(borrowed, token, node, ttl)
keep(now)
write_mark('running', token, node, attempt, at, ttl)
if not slot.stored or slot.count < attempt then redis.call('SET', ATTEMPTS, attempt) end
write_run(attempt, token, begun(attempt, token, node, trigger, at))
note_borrowed(token)
keep(now)
tell_changed()
return { 'restored' }
