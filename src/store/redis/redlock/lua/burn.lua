-- A number that came to nothing is used up: no later claim is given it.
-- ARGV, from the end: attempt
local attempt = tonumber(ARGV[#ARGV])
local now = now_ms()
local slot, bad = read_slot()
if bad then return bad end
if slot.count < attempt or not slot.stored then redis.call('SET', ATTEMPTS, math.max(slot.count, attempt)) end
keep(now)
return { 'burnt' }
