-- Records that a node is alive, and forgets those not heard of for the retention.
-- KEYS 1 nodes; ARGV 1 name, 2 its JSON up to the time, 3 retention (ms)
local now = now_ms()
local nodes = redis.call('HGETALL', KEYS[1])
for i = 1, #nodes, 2 do
  local seen = tonumber(string.match(nodes[i + 1], '"seen_ms":(%d+)}$'))
  if seen and seen + tonumber(ARGV[3]) <= now then redis.call('HDEL', KEYS[1], nodes[i]) end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. text(now) .. '}')
return { 'alive', now }
