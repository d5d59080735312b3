-- Operator: no slot of the job is granted for a while.
-- KEYS 1 the job's pause; ARGV 1 job, 2 channel, 3 until (ms, or null), 4 the verb's JSON up to the time
local now = text(now_ms())
redis.call('SET', KEYS[1], '{"since_ms":' .. now .. ',"until_ms":' .. ARGV[3] .. ',"audit":' .. ARGV[4] .. now .. '}}')
publish(ARGV[2], 'job ' .. ARGV[1])
return { 'applied' }
