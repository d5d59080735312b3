-- Operator: ends the pause now. The record then names who ended it, too.
-- KEYS 1 the job's pause; ARGV 1 job, 2 channel, 3 the verb's JSON up to the time
local now = now_ms()
local pause = redis.call('GET', KEYS[1])
if not pause then return { 'unchanged' } end
local since, till = read_pause(pause)
if not since then return { 'corrupt', KEYS[1], pause } end
if till <= now then return { 'unchanged' } end
-- One that lasts has nobody who ended it: what follows its end is who began it, and nothing else.
local begun = string.match(pause, '^{"since_ms":%-?%d+,"until_ms":[%d%l-]+,(.+)}$')
if not begun then return { 'corrupt', KEYS[1], pause } end
redis.call('SET', KEYS[1], '{"since_ms":' .. text(since) .. ',"until_ms":' .. text(now) .. ',' .. begun .. ',"ended":'
  .. ARGV[3] .. text(now) .. '}}')
publish(ARGV[2], 'job ' .. ARGV[1])
return { 'applied' }
