-- Makes a lease last; sets it again where the key is absent and nothing says that this claim ended or was followed by
-- another (the server restarted empty, or the lease lapsed unseen). Takes nothing from anybody else (I4).
-- ARGV 5 token, 6 node, 7 attempt, 8 ttl, 9 trigger, 10 claimed at (ms)
local token, node, attempt, ttl, trigger, at = ARGV[5], ARGV[6], tonumber(ARGV[7]), ARGV[8], ARGV[9], tonumber(ARGV[10])
local now = now_ms()
local mark, bad = read_mark(MARK)
if bad then return bad end

if mark.state == 'running' and mark.token == token then
  if mark.left < tonumber(ttl) then redis.call('PEXPIRE', MARK, ttl) end
  return { 'renewed' }
end
if mark.state == 'running' then return { 'lost', mark.raw } end
if mark.state == 'done' then return { 'done', mark.raw } end
if mark.state == 'backoff' then return { 'lost' } end
local done
done, bad = marker_of_verdict()
if bad then return bad end
if done then return { 'done', done } end

local slot
slot, bad = read_slot()
if bad then return bad end
if slot.count > attempt then return { 'lost' } end
local fields = redis.call('HGETALL', LOG)
for i = 1, #fields, 2 do
  local number = tonumber(string.match(fields[i], '^(%d+)'))
  if number and belongs_to(fields[i + 1], token) then
    if number == attempt and has_ended(fields[i + 1]) then return { 'lost' } end
  elseif number and number >= attempt then
    return { 'lost' }
  end
end

keep(now)
write_mark('running', token, node, attempt, at, ttl)
if not slot.stored or slot.count < attempt then redis.call('SET', ATTEMPTS, attempt) end
write_run(attempt, token, begun(attempt, token, node, trigger, at))
keep(now)
return { 'restored' }
