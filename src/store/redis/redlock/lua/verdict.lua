-- The verdict of a slot that is over, unless one is recorded here.
-- ARGV, from the end: verdict, by
local verdict, by = ARGV[#ARGV - 1], ARGV[#ARGV]
local now = now_ms()
local slot, bad = read_slot()
if bad then return bad end
local recorded = redis.call('HGET', LOG, 'verdict')
if recorded then return { 'already', recorded } end

recorded = '{"verdict":"' .. verdict .. '","by":"' .. by .. '","at_ms":' .. text(now) .. ',"attempt":0}'
keep(now)
redis.call('HSET', LOG, 'verdict', recorded)
if slot.mark.state ~= 'running' then redis.call('HDEL', RUNNING, KEY) end
keep(now)
return { 'first', recorded }
