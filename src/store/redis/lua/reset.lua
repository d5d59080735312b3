-- Operator: forgives all attempts so far and opens the slot again.
-- A borrowed key that was kept for the slot's success goes with it.
-- KEYS 5 what the job has come to lately, last the borrowed key, where an earlier answer has named it
-- ARGV 5 the verb's JSON up to the time
local now = now_ms()
local slot, bad = read_slot()
if bad then return bad end
if slot.mark.state == 'running' then return { 'held', slot.mark.raw, slot.mark.left } end

local borrowed, unnamed = read_noted()
if unnamed then return unnamed end
local verdict = string.match(redis.call('HGET', LOG, 'verdict') or '', '"verdict":"(%l+)"')

keep(now)
clear_mark()
settle_borrowed(borrowed, 0)
redis.call('HSET', LOG, 'forgiven', slot.count)
redis.call('HDEL', LOG, 'verdict')
change_latest(function(latest) set_reopened(latest, verdict) end)
write_audit(ARGV[5], now)
keep(now)
publish(CHANNEL, 'released ' .. SLOT)
tell_changed()
return { 'applied' }
