-- Operator: ends the pause now. The record then names who ended it.
-- KEYS 1 pauses; ARGV 1 job, 2 channel, 3 the verb's JSON up to the time
local now = now_ms()
local pause = redis.call('HGET', KEYS[1], ARGV[1])
if not pause then return { 'unchanged' } end
local since, till = read_pause(pause)
if not since then return { 'corrupt', KEYS[1], 'field ' .. ARGV[1] } end
if till <= now then return { 'unchanged' } end
local ended = '{"since_ms":' .. text(since) .. ',"until_ms":' .. text(now) .. ',"audit":' .. ARGV[3] .. text(now) .. '}}'
redis.call('HSET', KEYS[1], ARGV[1], ended)
publish(ARGV[2], 'job ' .. ARGV[1])
return { 'applied' }
