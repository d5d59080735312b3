-- Makes the registry know jobs; the time at which a name was first seen stays. Answers all that it knows.
-- KEYS 1 jobs; ARGV for each job: name, its JSON up to that time
local now = text(now_ms())
for i = 1, #ARGV, 2 do
  local known = redis.call('HGET', KEYS[1], ARGV[i])
  local first_seen = known and string.match(known, '"first_seen_ms":(%-?%d+)}$') or now
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1] .. first_seen .. '}')
end
return redis.call('HGETALL', KEYS[1])
