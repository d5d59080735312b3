-- Records that a node is alive, forgets those not heard of for the retention, and tells when any other instance was last
-- heard of (-1: never).
-- KEYS 1 nodes; ARGV 1 name, 2 its JSON up to the time, 3 how the JSON of this very instance begins, 4 retention (ms)
local now = now_ms()
local last = -1
local nodes = redis.call('HGETALL', KEYS[1])
for i = 1, #nodes, 2 do
  local seen = tonumber(string.match(nodes[i + 1], '"seen_ms":(%d+)}$'))
  if seen and seen + tonumber(ARGV[4]) <= now then
    redis.call('HDEL', KEYS[1], nodes[i])
  elseif seen and string.sub(nodes[i + 1], 1, #ARGV[3]) ~= ARGV[3] then
    last = math.max(last, seen)
  end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. text(now) .. '}')
return { 'alive', now, last }
