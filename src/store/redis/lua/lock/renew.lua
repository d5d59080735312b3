-- Makes what is held last. Entries that are absent are set again, all or none, where nobody with a later fence has left since, the
-- token is not spent, they then hold, and everybody who holds goes on holding.
-- ARGV after the locks: 1 owner, 2 instance, 3 node, 4 label, 5 fence
local FENCE = tonumber(ARGV[MORE + 5])

local function lost(lock)
  -- One that still waits for another of its locks stands in front here, and works on nothing.
  local by = first_in_front(lock, function(entry) return entry.owner ~= OWNER and entry.fence > 0 end)
  if by then return { 'lost', holder(by) } end
  return { 'lost' }
end

-- Sets them again. Answers the lock in which that cannot be.
local function restore(absent)
  for at, lock in ipairs(absent) do
    local before, last = holding(lock), lock.last
    lock.before = last
    put(lock, new_entry(lock, lock.place, FENCE))
    local after = holding(lock)
    before[TOKEN] = true
    for token in pairs(before) do
      if not after[token] then
        for back = 1, at do
          take(absent[back])
          absent[back].last = absent[back].before
        end
        return lock
      end
    end
  end
end

local function keep()
  local absent = {}
  for _, lock in ipairs(locks) do
    local own = lock.own
    if own then
      -- A late copy of the request has joined again: what stands there is not what was granted.
      if own.fence == 0 or own.fence ~= FENCE or not holds(lock) then return lost(lock) end
    elseif 2 * FENCE < lock.gone or lock.spent_until then
      return lost(lock)
    else
      absent[#absent + 1] = lock
    end
  end
  local lock = restore(absent)
  if lock then return lost(lock) end
  prolong()
  return { #absent == 0 and 'renewed' or 'restored' }
end

return finish(keep())
