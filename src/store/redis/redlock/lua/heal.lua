-- Brings success here from where it is known: marker, verdict, run.
-- KEYS 5 what the job has come to lately
-- ARGV, from the end: start of the slot (ms), token (- for an operator's), node, attempt, when (ms), ttl, the run's record (empty: none)
local last = #ARGV
local starts, token, node, attempt = tonumber(ARGV[last - 6]), ARGV[last - 5], ARGV[last - 4], tonumber(ARGV[last - 3])
local at, ttl, record = tonumber(ARGV[last - 2]), ARGV[last - 1], ARGV[last]
local now = now_ms()
local slot, bad = read_slot()
if bad then return bad end
if slot.mark.state == 'done' then return { 'healed' } end

keep(now)
write_mark('done', token, node, attempt, at, ttl)
local outcome = record ~= '' and write_run(attempt, token, record)
if attempt > slot.count then redis.call('SET', ATTEMPTS, attempt) end
write_done_verdict(node, attempt, at)
change_latest(function(latest)
  set_ended(latest, at, outcome)
  -- Not of a slot that an operator skipped in advance: a run of one has happened.
  if token ~= '-' or starts <= at then set_done(latest, at) end
end)
keep(now)
publish(CHANNEL, 'done ' .. SLOT)
return { 'healed' }
