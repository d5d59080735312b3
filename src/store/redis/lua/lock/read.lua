-- Reads locks. Without one the names of all that are kept; otherwise the clock, then of each lock what is known of it, its queue and
-- the operators' verbs.
-- KEYS 1 the names of all locks, then of each lock three: what is known of it, its queue, the operators' verbs
local answer = { now_ms() }
if #KEYS == 1 then
  local names = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
  for i = 1, #names, 2 do
    if tonumber(names[i + 1]) > answer[1] then answer[#answer + 1] = names[i] end
  end
end
for i = 2, #KEYS, 3 do
  answer[#answer + 1] = { redis.call('HGETALL', KEYS[i]), redis.call('ZRANGE', KEYS[i + 1], 0, -1), redis.call('GET', KEYS[i + 2]) }
end
return answer
