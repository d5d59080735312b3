-- Reads slots, three keys each. Answers the clock, then for each slot: mark, its remaining time, counter, log.
local answer = { now_ms() }
for i = 1, #KEYS, 3 do
  answer[#answer + 1] = {
    redis.call('GET', KEYS[i]),
    redis.call('PTTL', KEYS[i]),
    redis.call('GET', KEYS[i + 1]),
    redis.call('HGETALL', KEYS[i + 2]),
  }
end
return answer
