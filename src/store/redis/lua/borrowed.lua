-- The key of a foreign program that locks with SET key value NX EX, where a run is to exclude it: it stands beside the mark,
-- is set, renewed and deleted with it, and never touched while it has somebody else's value.
-- Its own value: cronward <token> <node>
-- It is the last of KEYS, and known by its name: every key of cronward begins with cronward: and a borrowed one must not.
local LOCK = KEYS[#KEYS]
if string.sub(LOCK, 1, 9) == 'cronward:' then LOCK = nil end

-- 'free', 'own' or 'other'; of another, who it may be and what is left. Reads only. A value that never expires would keep
-- everybody out for ever, and is told as a fault; so is a key of another type.
local function read_borrowed(token)
  local raw = LOCK and redis.pcall('GET', LOCK)
  if type(raw) == 'table' then
    -- Any other error is raised, as of every call.
    if not string.find(raw.err, 'WRONGTYPE', 1, true) then redis.call('GET', LOCK) end
    return nil, { 'corrupt', LOCK, 'another program keeps something else there than a lock, which would be text: name the '
      .. 'key that it locks with' }
  end
  if not raw then return { state = 'free' } end
  if string.sub(raw, 1, 41) == 'cronward ' .. token then return { state = 'own', left = redis.call('PTTL', LOCK) } end
  local left = redis.call('PTTL', LOCK)
  if left < 0 then
    return nil, { 'corrupt', LOCK, 'a lock of another program, without an end: nothing is started while it stands. Delete it '
      .. 'where nobody runs any more, and let that program set it with EX' }
  end
  -- Scripts use to write their host's name; anything else is somebody unknown.
  local node = string.match(raw, '^cronward %x+ (%w[%w._-]*)$') or string.match(raw, '^(%w[%w._-]*)$')
  if not node or #node > 64 or not string.find(node, '%w$') then node = 'unknown' end
  return { state = 'other', node = node, left = left }
end

-- Who has it, as the mark that it stands for.
local function borrowed_mark(borrowed, now)
  return 'running ' .. string.rep('0', 32) .. ' ' .. borrowed.node .. ' 0 ' .. text(now)
end

-- Sets it for so long, or makes it last so long; never shortens. Never over another's value: `borrowed` was read in this step.
local function hold_borrowed(borrowed, token, node, ttl)
  if not LOCK or borrowed.state == 'other' or (borrowed.state == 'own' and borrowed.left >= tonumber(ttl)) then return end
  redis.call('SET', LOCK, 'cronward ' .. token .. ' ' .. node, 'PX', ttl)
end

-- Which key it is stands in the log, with whose it is: an operator's verb names the slot alone.
local function note_borrowed(token)
  if LOCK then redis.call('HSET', LOG, 'borrowed', token .. ' ' .. LOCK) end
end

-- For a verb that takes the slot from whoever had it: how the noted key stands. One that is not among KEYS is asked for first:
-- a script touches only keys that were named with it.
local function read_noted()
  local token, key = string.match(redis.call('HGET', LOG, 'borrowed') or '', '^(%x+) (.+)$')
  if not token then return { state = 'free' } end
  if key ~= LOCK then return nil, { 'borrowed', key } end
  -- A key of another type by now is somebody else's, and keeps nobody from the slot's own keys.
  if type(redis.pcall('GET', LOCK)) == 'table' then return { state = 'other' } end
  return read_borrowed(token) or { state = 'other' }
end

-- Lets it go, or keeps it for as long as is left of a slot that is done.
local function settle_borrowed(borrowed, left)
  if not LOCK or borrowed.state ~= 'own' then return end
  if left > 0 then redis.call('PEXPIRE', LOCK, text(left)) else redis.call('DEL', LOCK) end
end
