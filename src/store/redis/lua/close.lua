-- After the slot's end: the first to ask records the verdict.
-- KEYS 5 what the job has come to lately, 6 its pause
-- ARGV 5 max_attempts, 6 by, 7 start of the slot (ms)
local max, by, starts = tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7])
local now = now_ms()
if now < ENDS then return { 'open', ENDS - now } end
local slot, bad = read_slot()
if bad then return bad end
local recorded = redis.call('HGET', LOG, 'verdict')
if recorded then return { 'already', recorded } end
if slot.mark.state == 'running' then return { 'running', slot.mark.raw, slot.mark.left } end

local verdict = 'missed'
if slot.mark.state == 'done' then
  verdict = 'done'
elseif slot.used >= max then
  verdict = 'failed'
elseif slot.count == 0 then
  local pause = redis.call('GET', KEYS[6])
  if pause then
    local since, till = read_pause(pause)
    if not since then return { 'corrupt', KEYS[6], pause } end
    if since < ENDS and till > starts then verdict = 'skipped' end
  end
end

recorded = '{"verdict":"' .. verdict .. '","by":"' .. by .. '","at_ms":' .. text(now) .. ',"attempt":0}'
keep(now)
redis.call('HSET', LOG, 'verdict', recorded)
redis.call('HDEL', RUNNING, KEY)
change_latest(function(latest) set_closed(latest, verdict) end)
keep(now)
tell_changed()
return { 'first', recorded }
