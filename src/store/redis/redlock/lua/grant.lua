-- The second half of a claim: the lease and its number, unless the number, a larger one or the slot is somebody else's here.
-- ARGV, from the end: token, node, attempt, ttl, trigger, time of the grant (ms), attempts forgiven, the JSON of the person
-- who asks up to the time (empty: nobody), '1': asked for by name although the slot is over, '1': exclusive
local last = #ARGV - 3
local token, node, attempt, ttl = ARGV[last - 6], ARGV[last - 5], tonumber(ARGV[last - 4]), ARGV[last - 3]
local trigger, at, forgiven, asked_by = ARGV[last - 2], tonumber(ARGV[last - 1]), tonumber(ARGV[last]), ARGV[last + 1]
local now = now_ms()

-- Whether this server has any record of this claim.
local function is_known(token)
  local fields = redis.call('HGETALL', LOG)
  for i = 1, #fields, 2 do
    if string.find(fields[i], '^%d') and belongs_to(fields[i + 1], token) then return true end
  end
  return false
end

local slot, bad = read_slot()
if bad then return bad end
local mark = slot.mark

if mark.state == 'done' then return { 'done', mark.raw } end
local done
done, bad = marker_of_verdict()
if bad then return bad end
if done then return { 'done', done } end
if mark.state == 'running' and mark.token ~= token then return { 'held', mark.raw, mark.left } end
-- It is written here already: the request came twice, or an answer was lost.
if mark.state == 'running' and mark.attempt == attempt then
  prolong_mark(mark, ttl)
  return { 'granted', mark.at }
end
local _, record = find_run(attempt, token)
if now >= ENDS and ARGV[#ARGV - 1] ~= '1' and not record then return { 'closed' } end
if mark.state == 'backoff' or slot.count > attempt then return { 'taken' } end
-- Who came later is asked of numbers alone: times are for what has been granted.
if overtaker(attempt, token, math.huge) or is_spent(token, slot.count) then return { 'taken' } end

-- The reservation kept other slots of the job out, unless it has run out since.
if ARGV[#ARGV] == '1' then
  local running, foreign = read_running(now)
  if foreign then return foreign end
  if running.other then return { 'taken' } end
end

-- The first send decides when it was granted.
at = record and tonumber(string.match(record, '"claimed_ms":(%d+)')) or at
write_mark('running', token, node, attempt, at, ttl)
if not slot.stored or slot.count < attempt then redis.call('SET', ATTEMPTS, attempt) end
if not record then
  -- Under an earlier number the same request has recorded it already.
  if asked_by ~= '' and not is_known(token) then write_audit(asked_by, at) end
  write_run(attempt, token, begun(attempt, token, node, trigger, at))
end
if forgiven > slot.forgiven then redis.call('HSET', LOG, 'forgiven', forgiven) end
keep(now)
return { 'granted', at }
