-- Operator: the done marker and the verdict without a run. The marker has no token.
-- KEYS 5 what the job has come to lately
-- ARGV 5 the verb's JSON up to the time, 6 by, 7 done_ttl
local now = now_ms()
local slot, bad = read_slot()
if bad then return bad end
if slot.mark.state == 'running' then return { 'held', slot.mark.raw, slot.mark.left } end
if slot.mark.state == 'done' then return { 'unchanged' } end

keep(now)
write_mark('done', '-', ARGV[6], 0, now, ARGV[7])
write_done_verdict(ARGV[6], 0, now)
write_audit(ARGV[5], now)
change_latest(function(latest) set_done(latest, now) end)
keep(now)
publish(CHANNEL, 'done ' .. SLOT)
tell_changed()
return { 'applied' }
