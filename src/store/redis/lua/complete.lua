-- Records success: the run, the verdict, the done marker. Done is a fact: it is written whoever holds the slot meanwhile,
-- and a done marker of another claim is left as it is (I3).
-- ARGV 5 token, 6 node, 7 attempt, 8 done_ttl, 9 the run's record
local token, node, attempt, ttl, record = ARGV[5], ARGV[6], tonumber(ARGV[7]), ARGV[8], ARGV[9]
local now = now_ms()
local slot, bad = read_slot()
if bad then return bad end
local mark = slot.mark

local meanwhile = overtaker(attempt, token)

keep(now)
if mark.state ~= 'done' then write_mark('done', token, node, attempt, now, ttl) end
write_run(attempt, token, record)
if not slot.stored or slot.count < attempt then redis.call('SET', ATTEMPTS, math.max(slot.count, attempt)) end
write_done_verdict(node, attempt, now)
keep(now)
if mark.state ~= 'done' then publish(CHANNEL, 'done ' .. SLOT) end
if mark.state == 'free' or mark.token == token then return meanwhile or { 'recorded' } end
return { 'overtaken', mark.node, mark.attempt }
