-- Put before every script that changes locks: what stands in their queues, and who of it holds. The decisions are those of
-- `store::rules::lock`, on entries that are read as far as they matter: the front of the queue, until it holds no more.
-- KEYS 1 the names of all locks, then of each lock three: what is known of it, its queue, which tokens are spent
-- ARGV 1 retention (ms), 2 how the channel of each process begins, 3 token, 4 ttl (ms), then for each lock name, weight, of, place
local NAMES, RETENTION, CHANNEL, TOKEN, TTL = KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
local LOCKS = math.floor((#KEYS - 1) / 3)
-- Where the arguments of the script itself begin.
local MORE = 4 + 4 * LOCKS
local NOW = now_ms()
local MOST_ENTRIES = 1024

-- Added to the score of a token that was left while a copy of its request may be under way. Both stay below 2^53.
local UNSURE = 2 ^ 52

-- How many entries are read first, then twice as many each time, up to the most that are one command.
local CHUNK, MOST_READ = 8, 512

-- The first thing that is none of cronward's, as an answer. Nothing is written then.
local foreign = nil

local function number_of(raw, key, what)
  if not raw then return 0 end
  if #raw > 16 or not string.find(raw, '^%d+$') then
    foreign = foreign or { 'corrupt', key, what .. ' ' .. raw }
    return 0
  end
  return tonumber(raw)
end

-- An entry as it stands: `<place> <fence> <weight> <of> <until> <owner> <instance> <node> <label>`; a fence of 0 was not told yet.
local function read_entry(lock, token, raw)
  local place, fence, weight, of, till, owner, instance, node, label =
    string.match(raw, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%x+) (%x+) (%w[%w._-]*) (.*)$')
  if not place or #place > 16 or #fence > 16 or #weight > 10 or #of > 10 or #till > 16 or #owner ~= 32 or #instance ~= 32
    or #node > 64 or not string.find(node, '%w$') then
    foreign = foreign or { 'corrupt', lock.known, token .. ' ' .. raw }
    return nil
  end
  return { token = token, place = tonumber(place), fence = tonumber(fence), weight = tonumber(weight), of = tonumber(of),
    till = tonumber(till), owner = owner, instance = instance, node = node, label = label }
end

local function written(entry)
  return table.concat({ text(entry.place), text(entry.fence), text(entry.weight), text(entry.of), text(entry.till), entry.owner,
    entry.instance, entry.node, entry.label }, ' ')
end

-- What stands in the queue, by its place: of two at one place, which only a loss of data brings about, the owner and then the
-- token decide, as members of one score stand.
local function member_of(entry)
  return entry.owner .. entry.token
end

local function stands_before(a, b)
  if a.place ~= b.place then return a.place < b.place end
  return member_of(a) < member_of(b)
end

-- `gone` is in halves: twice the largest fence that lapsed, and one more where it was left.
local function note_lapsed(lock, fence)
  lock.gone = math.max(lock.gone, 2 * fence)
end

local function note_left(lock, fence)
  if fence > 0 then lock.gone = math.max(lock.gone, 2 * fence + 1) end
end

-- Both keys name the same requests, unless one of them was lost, by an eviction or by hand: what stands in one alone has lapsed.
-- That is put right before anything is decided; it is nobody's step.
local function mend(lock)
  local members = {}
  for _, member in ipairs(redis.call('ZRANGE', lock.queue, 0, -1)) do members[string.sub(member, 33)] = member end
  local fields = redis.call('HGETALL', lock.known)
  for i = 1, #fields, 2 do
    local token = fields[i]
    if members[token] then
      members[token] = nil
    elseif #token == 32 then
      local entry = read_entry(lock, token, fields[i + 1])
      if foreign then return end
      note_lapsed(lock, entry.fence)
      redis.call('HDEL', lock.known, token)
    end
  end
  for _, member in pairs(members) do redis.call('ZREM', lock.queue, member) end
end

-- A lock as it is read. `own` is the request's entry, `stood` its member in the queue as that was read, `dead` is to be removed,
-- and `left` says that somebody is gone, so that others may hold. `stored` is what was read of the queue, with all who are gone, and
-- `was` the request's entry in it.
local function open(index)
  local at, given = 3 * index - 1, 4 * index + 1
  local lock = { known = KEYS[at], queue = KEYS[at + 1], spent = KEYS[at + 2], name = ARGV[given], weight = tonumber(ARGV[given + 1]),
    of = tonumber(ARGV[given + 2]), place = tonumber(ARGV[given + 3]), entries = {}, read = 0, whole = false, chunk = CHUNK,
    dead = {}, left = false, stored = {} }
  local known = redis.call('HMGET', lock.known, 'last', 'gone')
  lock.last, lock.gone = number_of(known[1], lock.known, 'last'), number_of(known[2], lock.known, 'gone')
  lock.size = redis.call('ZCARD', lock.queue)
  if redis.call('HLEN', lock.known) - (known[1] and 1 or 0) - (known[2] and 1 or 0) ~= lock.size then
    mend(lock)
    lock.left, lock.mended = true, true
    lock.size = redis.call('ZCARD', lock.queue)
  end
  local raw = redis.call('HGET', lock.known, TOKEN)
  local own = raw and read_entry(lock, TOKEN, raw)
  if own then
    lock.stood, lock.was = member_of(own), read_entry(lock, TOKEN, raw)
    if own.till > NOW then
      lock.own, lock.in_place = own, true
    else
      lock.left = true
      note_lapsed(lock, own.fence)
    end
  end
  -- In halves too: twice until when, and one more where it was there when it was left; above all those of which nothing is under way.
  local score = tonumber(redis.call('ZSCORE', lock.spent, TOKEN) or 0)
  local unsure = score >= UNSURE
  if unsure then score = score - UNSURE end
  if math.floor(score / 2) > NOW then
    lock.spent_until, lock.released, lock.settled = math.floor(score / 2), score % 2 == 1, not unsure
  end
  return lock
end

-- Where an entry stands among those that were read.
local function insert(lock, entry)
  local at = #lock.entries + 1
  while at > 1 and stands_before(entry, lock.entries[at - 1]) do at = at - 1 end
  table.insert(lock.entries, at, entry)
  lock.seen, lock.held = true, nil
end

-- Reads on. Entries that have lapsed go, whoever looks. The request's own is met where it stands; one that is not in the queue
-- yet, or not there any more, has its place among them.
local function read_on(lock)
  local members = redis.call('ZRANGE', lock.queue, lock.read, lock.read + lock.chunk - 1)
  lock.read, lock.whole, lock.chunk = lock.read + #members, #members < lock.chunk, math.min(MOST_READ, 2 * lock.chunk)
  local tokens = {}
  for i, member in ipairs(members) do tokens[i] = string.sub(member, 33) end
  local raws = #tokens > 0 and redis.call('HMGET', lock.known, unpack(tokens)) or {}
  for i, token in ipairs(tokens) do
    if token == TOKEN then
      table.insert(lock.stored, lock.was)
      if lock.in_place then
        table.insert(lock.entries, lock.own)
        lock.seen = true
      end
    else
      local entry = raws[i] and read_entry(lock, token, raws[i])
      if entry then table.insert(lock.stored, entry) end
      if entry and entry.till > NOW then
        table.insert(lock.entries, entry)
      else
        table.insert(lock.dead, { token = token, member = members[i] })
        if entry then note_lapsed(lock, entry.fence) end
        lock.left = true
      end
    end
  end
  local last = lock.entries[#lock.entries]
  if lock.own and not lock.in_place and not lock.seen and (lock.whole or (last and stands_before(lock.own, last))) then
    insert(lock, lock.own)
  end
end

local function entry_at(lock, at)
  while at > #lock.entries and not lock.whole do read_on(lock) end
  return lock.entries[at]
end

-- How many of these hold: the longest front that weighs no more than the smallest limit in it. Entries of one owner weigh once, and
-- those of one owner at one place are one step.
local function prefix(nth)
  local weights, sum, limit, held, at = {}, 0, math.huge, 0, 1
  local entry = nth(1)
  while entry do
    local place, owner = entry.place, entry.owner
    repeat
      local weight = weights[owner] or 0
      sum, limit = sum + math.max(0, entry.weight - weight), math.min(limit, entry.of)
      weights[owner] = math.max(weight, entry.weight)
      at = at + 1
      entry = nth(at)
    until not entry or entry.place ~= place or entry.owner ~= owner
    if sum > limit then break end
    held = at - 1
  end
  return held
end

-- How many hold, as long as nobody of those that were read is put or taken out.
local function front(lock)
  lock.held = lock.held or prefix(function(at) return entry_at(lock, at) end)
  return lock.held
end

-- The first of those that hold of whom this is true.
local function first_in_front(lock, is)
  for at = 1, front(lock) do
    if is(lock.entries[at]) then return lock.entries[at] end
  end
end

local function holds(lock)
  return first_in_front(lock, function(entry) return entry.token == TOKEN end) ~= nil
end

local function holding(lock)
  local tokens = {}
  for at = 1, front(lock) do tokens[lock.entries[at].token] = true end
  return tokens
end

-- Who held as the last step left the queue. Of one that was mended nobody knows who was kept waiting by whom.
local function held_before(lock)
  local tokens = {}
  for at = 1, lock.mended and 0 or prefix(function(at) return lock.stored[at] end) do tokens[lock.stored[at].token] = true end
  return tokens
end

-- Who holds first, of other owners.
local function first_holder(lock, owner)
  return first_in_front(lock, function(entry) return entry.owner ~= owner end)
end

-- The request's entry in no queue any more. Answers it.
local function take(lock)
  local own = lock.own
  for at, entry in ipairs(lock.entries) do
    if entry.token == TOKEN then
      table.remove(lock.entries, at)
      lock.held = nil
      break
    end
  end
  lock.own, lock.in_place, lock.seen = nil, false, false
  return own
end

-- The entry where it stands, as far as the queue was read.
local function put(lock, entry)
  lock.own, lock.last = entry, math.max(lock.last, entry.place, entry.fence)
  local last = lock.entries[#lock.entries]
  if lock.whole or (last and stands_before(entry, last)) then insert(lock, entry) end
end

-- Entries of others in the queue, those that lapsed behind its front included.
local function others(lock)
  return lock.size - #lock.dead - (lock.stood and 1 or 0)
end

-- Every lock, without what has lapsed at its front.
local locks = {}
for index = 1, LOCKS do
  locks[index] = open(index)
  front(locks[index])
end
