-- Records success: the run, the verdict, the done marker. Done is a fact: it is written whoever holds the slot meanwhile,
-- and a done marker of another claim is left as it is (I3).
-- KEYS 5 what the job has come to lately, last the borrowed key, if there is one: kept until the slot's end
-- KEYS and the end of ARGV also have what output.lua takes
-- ARGV 5 token, 6 node, 7 attempt, 8 done_ttl, 9 the run's record, 10 claimed at (ms)
local token, node, attempt, ttl, record = ARGV[5], ARGV[6], tonumber(ARGV[7]), ARGV[8], ARGV[9]
local now = now_ms()
local slot, bad = read_slot()
if bad then return bad end
local mark = slot.mark

local meanwhile = overtaker(attempt, token, tonumber(ARGV[10]))

local borrowed = read_borrowed(token) or { state = 'other', node = 'unknown' }
if borrowed.state == 'other' and mark.state ~= 'done' then
  meanwhile = meanwhile or { 'overtaken', borrowed.node, 0 }
end

-- This success is recorded, and the slot is no longer done: an operator has opened it since, and a repetition does not undo that.
local _, known = find_run(attempt, token)
local opened = known and has_succeeded(known) and mark.state ~= 'done' and not marker_of_verdict()
if opened then
  if mark.state == 'free' or mark.token == token then return meanwhile or { 'recorded' } end
  return { 'overtaken', mark.node, mark.attempt }
end

record = keep_output(attempt, token, record, now)
keep(now)
if mark.state ~= 'done' then write_mark('done', token, node, attempt, now, ttl) end
local outcome = write_run(attempt, token, record)
if not slot.stored or slot.count < attempt then redis.call('SET', ATTEMPTS, math.max(slot.count, attempt)) end
write_done_verdict(node, attempt, now)
settle_borrowed(borrowed, ENDS - now)
change_latest(function(latest)
  set_ended(latest, now, outcome)
  set_done(latest, now)
end)
keep(now)
if mark.state ~= 'done' then publish(CHANNEL, 'done ' .. SLOT) end
tell_changed()
if mark.state == 'free' or mark.token == token then return meanwhile or { 'recorded' } end
return { 'overtaken', mark.node, mark.attempt }
