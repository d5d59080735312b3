-- Put before every script that changes locks, after `queue`: what a step changes, and how that is written and told.
-- Tokens that are remembered; and of these such as were left with nothing under way, which a release that comes again finds.
local MOST_SPENT, MOST_LEFT = 4096, 16

-- An entry was put that was not there: it alone is refused when memory is full, as a whole.
local joins = false

-- The request's own entries stay as they stand: where nobody is gone either, nothing is written.
local looks = false

-- An entry of the request that asks, or renews.
local OWNER = ARGV[MORE + 1]
local function new_entry(lock, place, fence)
  return { token = TOKEN, place = place, fence = fence, weight = lock.weight, of = lock.of, till = NOW + TTL, owner = OWNER,
    instance = ARGV[MORE + 2], node = ARGV[MORE + 3], label = ARGV[MORE + 4] }
end

-- Makes the request's entries last, never shorter.
local function prolong()
  for _, lock in ipairs(locks) do lock.own.till = math.max(lock.own.till, NOW + TTL) end
end

-- What comes under the token from now on is a late copy. `settled` where none is under way.
local function spend(lock, released, settled)
  lock.settled = settled and (not lock.spent_until or lock.settled)
  lock.spent_until = math.max(lock.spent_until or 0, NOW + TTL)
  lock.released = lock.released or released
  lock.spends = true
end

-- As the end of an answer.
local function holder(entry)
  return entry.node, entry.owner, entry.fence, entry.label
end

-- Makes a key last for so long, never shorter.
local function outlive(key, span)
  redis.call('PEXPIRE', key, text(math.max(span, redis.call('PTTL', key))))
end

-- The names of keys and members that nobody needs any more, as many as may be arguments of one command.
local function remove(command, key, names)
  for at = 1, #names, 1000 do redis.call(command, key, unpack(names, at, math.min(at + 999, #names))) end
end

local function write_spent(lock)
  local score = 2 * lock.spent_until + (lock.released and 1 or 0) + (lock.settled and 0 or UNSURE)
  redis.call('ZADD', lock.spent, text(score), TOKEN)
  redis.call('ZREMRANGEBYSCORE', lock.spent, '-inf', text(2 * NOW + 1))
  redis.call('ZREMRANGEBYSCORE', lock.spent, text(UNSURE), text(UNSURE + 2 * NOW + 1))
  -- The one that ends soonest goes first: of those with nothing under way, then of all.
  local left = redis.call('ZCOUNT', lock.spent, '-inf', '(' .. text(UNSURE))
  local surplus = math.max(left - MOST_LEFT, redis.call('ZCARD', lock.spent) - MOST_SPENT)
  if surplus > 0 then remove('ZREM', lock.spent, redis.call('ZRANGE', lock.spent, 0, surplus - 1)) end
  outlive(lock.spent, lock.spent_until - NOW)
end

local function write_lock(lock)
  local own = lock.own
  -- Nobody has used it, and nobody does now.
  if not own and lock.last == 0 and lock.gone == 0 and not lock.spends and #lock.dead == 0 then return end
  -- Listed for as long as it is kept. First of all: where that key is none of cronward's, nothing was written.
  redis.call('ZADD', NAMES, text(NOW + math.max(TTL + RETENTION, redis.call('PTTL', lock.known))), lock.name)
  if own then
    redis.call('HSET', lock.known, TOKEN, written(own), 'last', text(lock.last), 'gone', text(lock.gone))
    redis.call('ZADD', lock.queue, text(own.place), member_of(own))
  elseif lock.last > 0 or lock.gone > 0 then
    redis.call('HSET', lock.known, 'last', text(lock.last), 'gone', text(lock.gone))
  end
  local members, tokens = {}, {}
  for at, dead in ipairs(lock.dead) do members[at], tokens[at] = dead.member, dead.token end
  if lock.stood and not (own and member_of(own) == lock.stood) then members[#members + 1] = lock.stood end
  if lock.stood and not own then tokens[#tokens + 1] = TOKEN end
  remove('ZREM', lock.queue, members)
  remove('HDEL', lock.known, tokens)
  if lock.spends then write_spent(lock) end
  outlive(lock.known, TTL + RETENTION)
  outlive(lock.queue, TTL + RETENTION)
end

-- Whether the request stands in this lock and does not hold there.
local function waits_in(lock, token)
  lock.holders = lock.holders or holding(lock)
  if lock.holders[token] then return false end
  local raw = redis.call('HGET', lock.known, token)
  local till = raw and tonumber(string.match(raw, '^%d+ %d+ %d+ %d+ (%d+) '))
  return till and till > NOW
end

-- Whom this step lets hold, but for the one who asks: who came to hold in one of these locks, and holds in all of them in which it
-- stands. Who held there before was not kept waiting by whoever left, and who waits elsewhere is told by the step that lets it hold
-- there.
local function let_in()
  local entries, seen = {}, { [TOKEN] = true }
  for _, lock in ipairs(locks) do
    local before = lock.left and held_before(lock)
    for at = 1, lock.left and front(lock) or 0 do
      local entry = lock.entries[at]
      if entry.fence == 0 and not before[entry.token] and not seen[entry.token] then
        seen[entry.token] = true
        local waits = false
        for _, other in ipairs(locks) do waits = waits or waits_in(other, entry.token) end
        if not waits then entries[#entries + 1] = entry end
      end
    end
  end
  return entries
end

-- Writes what the step has changed, tells of it, and answers. PEXPIRE is allowed when memory is full, and what comes after a first
-- write is not refused any more: so a renewal, a beat and a release go through, and somebody new is refused with nothing changed.
local function finish(answer)
  -- Whoever may hold by now is read before the first entry is removed: what is read later begins at a rank.
  local hinted = let_in()
  if foreign then return foreign end
  local left = false
  for _, lock in ipairs(locks) do left = left or lock.left end
  if looks and not left then return answer end
  if not joins then outlive(NAMES, TTL + RETENTION) end
  for _, lock in ipairs(locks) do write_lock(lock) end
  if joins then
    redis.call('ZREMRANGEBYSCORE', NAMES, '-inf', text(NOW))
    outlive(NAMES, TTL + RETENTION)
  end
  for _, entry in ipairs(hinted) do publish(CHANNEL .. entry.instance, 'lock ' .. entry.token) end
  return answer
end
