-- Makes the registry know jobs; the time at which a name was first seen stays, and so does what a file's daemon said where
-- somebody else speaks. Answers all that it knows.
-- KEYS 1 jobs; ARGV for each job: name, its JSON up to that time
local now = text(now_ms())

-- Only an entry from elsewhere says where it is from. Quotes inside of values are escaped, so this can only be its own field.
local function is_of_file(entry)
  return string.find(entry, '"origin":"', 1, true) == nil
end

for i = 1, #ARGV, 2 do
  local known = redis.call('HGET', KEYS[1], ARGV[i])
  if not known or is_of_file(ARGV[i + 1]) or not is_of_file(known) then
    local first_seen = known and string.match(known, '"first_seen_ms":(%-?%d+)}$') or now
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1] .. first_seen .. '}')
  end
end
return redis.call('HGETALL', KEYS[1])
