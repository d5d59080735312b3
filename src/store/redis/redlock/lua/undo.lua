-- Takes back what a claim that came to nothing has here: its reservation, and its grant under this number (0: none), but
-- none under a later one. The number is burnt before this is sent (burn.lua), so that a late copy of this request never meets a
-- lease that has it. It is not forgiven: another claim may have had the same number elsewhere, and a run under it.
-- ARGV, from the end: the JSON of the person who asks up to the time (empty: nobody), token, attempt
local token, attempt = ARGV[#ARGV - 1], tonumber(ARGV[#ARGV])
local now = now_ms()

-- Removes what `write_audit` wrote at this time; those after it move up, so that their numbers stay without a gap.
local function remove_audit(head, at)
  local own, n = head .. text(at) .. '}', 1
  while true do
    local entry = redis.call('HGET', LOG, 'audit.' .. n)
    if not entry or entry == own then break end
    n = n + 1
  end
  local after = redis.call('HGET', LOG, 'audit.' .. n + 1)
  while after do
    redis.call('HSET', LOG, 'audit.' .. n, after)
    n = n + 1
    after = redis.call('HGET', LOG, 'audit.' .. n + 1)
  end
  redis.call('HDEL', LOG, 'audit.' .. n)
end

local slot, bad = read_slot()
if bad then return bad end
local mark = slot.mark
local own = mark.state == 'running' and mark.token == token
if own and (mark.attempt == 0 or mark.attempt == attempt) then clear_mark() end
if attempt == 0 then return { 'undone' } end

local field, record = find_run(attempt, token)
if record and not has_ended(record) then
  redis.call('HDEL', LOG, field)
  local at = tonumber(string.match(record, '"claimed_ms":(%d+)'))
  if ARGV[#ARGV - 2] ~= '' and at then remove_audit(ARGV[#ARGV - 2], at) end
end
keep(now)
return { 'undone' }
