-- Operator: takes the lease from its holder. Its record gets an end, so that its next renewal finds that it is over.
-- A borrowed key that is still its holder's goes with it; one that has somebody else's value stays.
-- KEYS last the borrowed key, where an earlier answer has named it
-- ARGV 5 the verb's JSON up to the time
local now = now_ms()
local slot, bad = read_slot()
if bad then return bad end
local mark = slot.mark
if mark.state ~= 'running' then return { 'unchanged' } end

local borrowed, unnamed = read_noted()
if unnamed then return unnamed end

keep(now)
clear_mark()
settle_borrowed(borrowed, 0)
local field, record = find_run(mark.attempt, mark.token)
record = record or begun(mark.attempt, mark.token, mark.node, 'schedule', mark.at)
if not has_ended(record) then
  redis.call('HSET', LOG, field, string.sub(record, 1, -2) .. ',"outcome":"lost_lease"}')
end
write_audit(ARGV[5], now)
keep(now)
publish(CHANNEL, 'released ' .. SLOT)
tell_changed()
return { 'applied' }
