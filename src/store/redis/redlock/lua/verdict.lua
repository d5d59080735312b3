-- The verdict of a slot that is over, unless one is recorded here.
-- KEYS 5 what the job has come to lately
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
change_latest(function(latest) set_closed(latest, verdict) end)
keep(now)
return { 'first', recorded }
