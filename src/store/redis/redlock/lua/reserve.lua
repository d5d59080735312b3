-- The first half of a claim: keeps the slot for it for a short while where nothing is in its way here, and tells what is
-- known here in any case. The checks are those of a claim, in its order. No number is taken.
-- KEYS 5 the job's pause, the last two: see age.lua
-- ARGV, from the end: token, node, ttl of the reservation, ttl of the lease, max_attempts, start of the slot (ms), the
-- largest attempt number, '1': asked for by name although the slot is over, '1': exclusive
local last = #ARGV - 2
local token, node, reserved, ttl = ARGV[last - 6], ARGV[last - 5], ARGV[last - 4], ARGV[last - 3]
local max, starts, limit = tonumber(ARGV[last - 2]), tonumber(ARGV[last - 1]), tonumber(ARGV[last])
local now = now_ms()
local slot, bad = read_slot()
if bad then return bad end
local mark = slot.mark
local over = now >= ENDS and ARGV[#ARGV - 1] ~= '1'

-- When the last grant that is known here was made.
local function latest()
  local at, fields = 0, redis.call('HGETALL', LOG)
  for i = 1, #fields, 2 do
    local claimed = string.find(fields[i], '^%d') and string.match(fields[i + 1], '"claimed_ms":(%d+)')
    at = math.max(at, tonumber(claimed or 0))
  end
  return at
end

local function found(...)
  return { 'found', now, slot.count, slot.forgiven, latest(), ... }
end

if mark.state == 'done' then return found('done', mark.raw) end
local done
done, bad = marker_of_verdict()
if bad then return bad end
if done then return found('done', done) end
if mark.state == 'running' and mark.token == token and mark.attempt > 0 then
  prolong_mark(mark, ttl)
  return found('reserved', mark.attempt, mark.at)
end
-- A grant whose answer was lost and whose lease has lapsed since is the same attempt still.
local again, granted
if mark.state == 'free' or (mark.state == 'running' and mark.token == token) then again, granted = unanswered(token, slot) end
if not again then
  if now < starts then return found('early') end
  if over then return found('closed') end
  if mark.state == 'running' and mark.token ~= token then return found('held', mark.raw, mark.left) end
  if slot.used >= max or slot.count >= limit then return found('exhausted') end
  if mark.state == 'backoff' then return found('backoff', math.max(1, mark.left)) end
  if is_spent(token, slot.count) then return found('spent') end
end

local pause = redis.call('GET', KEYS[5])
if pause then
  local since, till = read_pause(pause)
  if not since then return { 'corrupt', KEYS[5], pause } end
  if till > now and over then return found('closed') end
  if till == math.huge then return found('paused', -1) end
  if till > now then return found('paused', till - now) end
end
if ARGV[#ARGV] == '1' then
  local running, foreign = read_running(now)
  if foreign then return foreign end
  if running.other and over then return found('closed') end
  if running.other then return found('blocked', unpack(running.other)) end
end

write_mark('running', token, node, 0, now, reserved)
return found('reserved', again or 0, granted or 0)
