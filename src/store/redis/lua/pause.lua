-- Operator: no slot of the job is granted for a while.
-- KEYS 1 pauses; ARGV 1 job, 2 channel, 3 until (ms, or null), 4 the verb's JSON up to the time
local now = text(now_ms())
local pause = '{"since_ms":' .. now .. ',"until_ms":' .. ARGV[3] .. ',"audit":' .. ARGV[4] .. now .. '}}'
redis.call('HSET', KEYS[1], ARGV[1], pause)
publish(ARGV[2], 'job ' .. ARGV[1])
return { 'applied' }
