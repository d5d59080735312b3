-- Ends a request, whatever it had come to. Answers of each lock what that came to.
-- ARGV after the locks: 1 owner, 2 fence, or '-' where it was never told that it holds, 3 '1': a copy of it may be under way
local FENCE = tonumber(ARGV[MORE + 2])

-- Somebody who holds, was told so no earlier, and cannot hold beside this demand.
local function granted_since(lock)
  return first_in_front(lock, function(entry)
    return entry.fence > 0 and entry.fence >= FENCE and entry.owner ~= OWNER
      and entry.weight + lock.weight > math.min(entry.of, lock.of)
  end)
end

local function depart(lock)
  local own = take(lock)
  local as_granted = own ~= nil and (not FENCE or (own.fence > 0 and own.fence == FENCE))
  local part = { 'expired' }
  if as_granted or lock.released or not FENCE then
    part = { 'released' }
  else
    local by = granted_since(lock)
    if by then
      part = { 'overtaken', holder(by) }
    elseif lock.gone > 2 * FENCE + 1 then
      -- Who left since, and had come later.
      part = { 'overtaken' }
    end
  end
  if own then
    note_left(lock, own.fence)
    lock.left = true
  end
  spend(lock, as_granted, as_granted and ARGV[MORE + 3] ~= '1')
  return part
end

local answer = { 'left' }
for _, lock in ipairs(locks) do answer[#answer + 1] = depart(lock) end
return finish(answer)
