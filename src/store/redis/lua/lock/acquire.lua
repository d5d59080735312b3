-- Asks for the locks: all of them, or none. The same request again is the beat by which a waiter keeps its place.
-- ARGV after the locks: 1 owner, 2 instance, 3 node, 4 label, 5 '1': waits its turn, otherwise it holds at once or leaves no trace
local WAITS = ARGV[MORE + 5] == '1'

-- A number for all of these locks, larger than every one that was given in any.
local function draw()
  local number = NOW
  for _, lock in ipairs(locks) do number = math.max(number, lock.last + 1) end
  for _, lock in ipairs(locks) do lock.last = number end
  return number
end

-- After a scan that found a queue full its length alone refuses for so long (ms), or until the first entry lapses.
local REFUSED_BY_COUNT = 1000

-- Refused because a queue is full. Entries that have lapsed anywhere in the queue do not count, but only a scan finds them, which costs
-- as much as a hundred refusals. So the time of the next scan is remembered among the spent tokens, where lapsed members are removed, and
-- among those of which something is under way, for the others go first.
local function is_full(lock)
  if others(lock) < MOST_ENTRIES then return false end
  local scan_at = (tonumber(redis.call('ZSCORE', lock.spent, 'full') or UNSURE) - UNSURE) / 2
  if scan_at > NOW then return true end
  entry_at(lock, math.huge)
  if others(lock) < MOST_ENTRIES then return false end
  scan_at = NOW + REFUSED_BY_COUNT
  for _, entry in ipairs(lock.entries) do scan_at = math.min(scan_at, entry.till) end
  -- With memory full nothing is remembered.
  local noted = not foreign and redis.pcall('ZADD', lock.spent, text(UNSURE + 2 * scan_at), 'full')
  if type(noted) == 'number' then outlive(lock.spent, REFUSED_BY_COUNT) end
  return true
end

-- Enters every queue with one place. Whatever was left of an earlier entry goes: parts of a request that stood at different places
-- could wait for each other's.
local function join()
  for _, lock in ipairs(locks) do
    local part = take(lock)
    if part then
      note_lapsed(lock, part.fence)
      lock.left = true
    end
  end
  for _, lock in ipairs(locks) do
    if is_full(lock) then
      looks = true
      return { 'refused', 'full' }
    end
  end
  local place = draw()
  for _, lock in ipairs(locks) do put(lock, new_entry(lock, place, 0)) end
  joins = true
end

-- Where the owner holds the lock already by another request, this one stands beside that: it holds at once, with everybody who held
-- before, or not at all. True also where that does not concern it; and whether it was moved there.
local function is_beside_own(lock)
  local own = lock.own
  if own.fence > 0 then return true end
  local other = first_in_front(lock, function(entry) return entry.owner == OWNER and entry.token ~= TOKEN end)
  local held = holds(lock)
  if not other or (held and own.place <= other.place) then return true end
  local before = holding(lock)
  take(lock)
  lock.moved = true
  own.place = other.place
  put(lock, own)
  local after = holding(lock)
  before[TOKEN] = true
  for token in pairs(before) do
    if not after[token] then return false end
  end
  -- Who held where it stood is waited for by nobody who came between.
  return true, not held
end

-- One number for all of them, drawn at the first such answer. The place that was drawn for it serves where nobody was given a
-- number since, so that numbers do not run ahead of the clock.
local function granted()
  local fence, place = locks[1].own.fence, locks[1].own.place
  local told, unused = fence > 0, true
  for _, lock in ipairs(locks) do
    told = told and lock.own.fence == fence
    unused = unused and lock.own.place == place and lock.last == place
  end
  if not told then fence = unused and place or draw() end
  local answer = { 'held', fence }
  for _, lock in ipairs(locks) do
    lock.own.fence = fence
    answer[#answer + 1] = lock.own.place
  end
  return answer
end

-- Entries of other owners in front of the request, as many as were read, and how many there are: of one that stands behind what was
-- read, all that stand there count.
local function ahead(lock)
  local before, own = {}, 0
  for _, entry in ipairs(lock.entries) do
    if entry.token == TOKEN then return before, #before end
    if entry.owner == OWNER then own = own + 1 else before[#before + 1] = entry end
  end
  local rank = lock.in_place and redis.call('ZRANK', lock.queue, member_of(lock.own))
  return before, (rank and rank - #lock.dead or others(lock)) - own
end

local function waiting(waits)
  local most, by, soonest = 0, nil, nil
  for _, lock in ipairs(waits) do
    local before, count = ahead(lock)
    for _, entry in ipairs(before) do soonest = math.min(soonest or entry.till, entry.till) end
    if not by or count > most then most, by = count, first_holder(lock, OWNER) or before[1] end
  end
  return { 'waiting', most, (soonest or NOW + TTL) - NOW, holder(by or locks[1].own) }
end

-- Who keeps a request from holding that does not wait and stands nowhere.
local function busy()
  local by, soonest = nil, nil
  for _, lock in ipairs(locks) do
    by = by or first_holder(lock, OWNER)
    for _, entry in ipairs(lock.entries) do
      if entry.owner ~= OWNER then soonest = math.min(soonest or entry.till, entry.till) end
    end
  end
  return { 'busy', 0, (soonest or NOW + TTL) - NOW, holder(by or new_entry(locks[1], 0, 0)) }
end

-- Makes the entries of one that waits last. One that looks again soon after it has asked changes nothing: while they last for five
-- sixths of their TTL.
local function keep_alive()
  local lasts, moved = true, false
  for _, lock in ipairs(locks) do
    lasts = lasts and 6 * (lock.own.till - NOW) >= 5 * TTL
    moved = moved or lock.moved
  end
  looks = lasts and not joins and not moved
  if not lasts then prolong() end
end

local function enter()
  local there = true
  for _, lock in ipairs(locks) do
    if lock.spent_until then return { 'refused', 'spent' } end
    there = there and lock.own
  end
  if not there then
    local refused = join()
    if refused then return refused end
  end
  local moved, refused, waits = false, false, {}
  for _, lock in ipairs(locks) do
    local beside, now_beside = is_beside_own(lock)
    moved, refused = moved or now_beside, refused or not beside
  end
  for _, lock in ipairs(locks) do
    if not refused and not holds(lock) then waits[#waits + 1] = lock end
  end
  if refused or (moved and #waits > 0) then
    -- It would have to wait for those whom its owner keeps waiting: it leaves everywhere. As one that stands beside its owner in one
    -- lock, and behind others in another: those may wait for that owner.
    for _, part in ipairs(locks) do part.left = take(part) ~= nil or part.left end
    joins = false
    return { 'refused', 'itself' }
  end
  if #waits == 0 then
    prolong()
    return granted()
  end
  keep_alive()
  return waiting(waits)
end

local answer = enter()
if WAITS or answer[1] == 'held' then return finish(answer) end
if foreign then return foreign end
if answer[1] == 'waiting' then answer[1] = 'busy' end
-- Who does not wait cannot wait for itself.
if answer[2] == 'itself' then return busy() end
return answer
