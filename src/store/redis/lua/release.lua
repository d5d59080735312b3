-- Records a run that failed or was given back, and releases its lease if it still stands; nobody else's (I4).
-- KEYS 5 what the job has come to lately, last the borrowed key, if there is one
-- KEYS and the end of ARGV also have what output.lua takes
-- ARGV 5 token, 6 node, 7 attempt, 8 wait (ms, 0 for none), 9 attempts to forgive (0 or 1), 10 the run's record,
-- 11 claimed at (ms)
local token, node, attempt, wait, refund, record = ARGV[5], ARGV[6], tonumber(ARGV[7]), ARGV[8], tonumber(ARGV[9]), ARGV[10]
local now = now_ms()
local slot, bad = read_slot()
if bad then return bad end
local mark = slot.mark
local own = mark.token == token and mark.state ~= 'done'
local held = own and mark.state == 'running'

-- A repetition finds its own wait, or nothing and its own run ended.
local answer = { 'expired' }
if own then
  answer = { 'released' }
  -- A copy of its claim came late, and was granted anew after somebody else had come and gone.
  if mark.attempt ~= attempt then answer = overtaker(attempt, token, tonumber(ARGV[11])) or answer end
elseif mark.state ~= 'free' then
  answer = { 'overtaken', mark.node, mark.attempt }
else
  local _, old = find_run(attempt, token)
  if old and has_ended(old) then answer = { 'released' } end
  answer = overtaker(attempt, token, tonumber(ARGV[11])) or answer
end

local borrowed = read_borrowed(token) or { state = 'other' }

record = keep_output(attempt, token, record, now)
keep(now)
if held and wait == '0' then
  clear_mark()
elseif held then
  write_mark('backoff', token, node, attempt, now, wait)
elseif mark.state == 'free' and slot.running and string.sub(slot.running, 1, 32) == token then
  -- The mark was lost, what it left behind is this run's.
  redis.call('HDEL', RUNNING, KEY)
end
local outcome = write_run(attempt, token, record)
-- A stale run may have a larger number than the counter of a server that lost its data: the next claim goes on from it.
if slot.stored and slot.count < attempt then redis.call('SET', ATTEMPTS, attempt) end
if held and refund > 0 then redis.call('HSET', LOG, 'forgiven', slot.forgiven + refund) end
settle_borrowed(borrowed, 0)
change_latest(function(latest) set_ended(latest, now, outcome) end)
keep(now)
if held then publish(CHANNEL, 'released ' .. SLOT) end
tell_changed()
return answer
