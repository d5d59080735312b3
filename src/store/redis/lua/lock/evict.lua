-- Operator: takes somebody out of one queue. The ttl is for how long the token is spent by that.
-- KEYS 5 the newest of the operators' verbs, a line each
-- ARGV after the lock: 1 the verb's JSON up to the time
local AUDITS, MOST_AUDITS = KEYS[5], 16

local lock = locks[1]
local own = take(lock)
if not own then return finish({ 'unchanged' }) end
note_left(lock, own.fence)
lock.left = true
spend(lock, false, false)
-- Not before it would have lapsed: a waiter's next beat may come that late.
lock.spent_until = math.max(lock.spent_until, own.till)
local lines = { ARGV[MORE + 1] .. text(NOW) .. '}' }
for line in string.gmatch(redis.call('GET', AUDITS) or '', '[^\n]+') do table.insert(lines, #lines, line) end
local answer = finish({ 'applied' })
if not foreign then
  local kept = table.concat(lines, '\n', math.max(1, #lines - MOST_AUDITS + 1))
  redis.call('SET', AUDITS, kept, 'PX', text(TTL + RETENTION))
end
return answer
