-- Operator: the done marker and the verdict without a run. The marker has no token.
-- KEYS 5 what the job has come to lately
-- ARGV 5 the verb's JSON up to the time, 6 by, 7 done_ttl, 8 start of the slot (ms)
local now = now_ms()
local slot, bad = read_slot()
if bad then return bad end
if slot.mark.state == 'running' then return { 'held', slot.mark.raw, slot.mark.left } end
if slot.mark.state == 'done' then return { 'unchanged' } end

keep(now)
write_mark('done', '-', ARGV[6], 0, now, ARGV[7])
write_done_verdict(ARGV[6], 0, now)
write_audit(ARGV[5], now)
-- A slot that is skipped in advance says nothing about how the job fares: what fails until it begins has to be seen.
if tonumber(ARGV[8]) <= now then change_latest(function(latest) set_done(latest, now) end) end
keep(now)
publish(CHANNEL, 'done ' .. SLOT)
tell_changed()
return { 'applied' }
