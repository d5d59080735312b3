-- Put before every script about one slot.
-- KEYS 1 mark, 2 attempts, 3 log, 4 what runs of the job
-- ARGV 1 job@key, 2 end of the slot (ms), 3 retention (ms), 4 channel
local MARK, ATTEMPTS, LOG, RUNNING = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local SLOT, ENDS, RETENTION, CHANNEL = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local KEY = string.match(SLOT, '@(.+)$')

-- Told at the end of each step that has changed something to be seen.
local function tell_changed()
  tell_change(CHANNEL, 'slot ' .. SLOT)
end

local STATES = { running = true, backoff = true, done = true }

-- What cronward wrote, and only that: the adapter reads marks by the same rule.
local function is_mark(state, token, node, attempt, at)
  return STATES[state] and (#token == 32 or (token == '-' and state == 'done'))
    and #node <= 64 and string.find(node, '%w$') and #attempt <= 9 and #at <= 15
end

-- What stands at a slot's key. `left` is its remaining time.
local function read_mark(key)
  local raw = redis.call('GET', key)
  if not raw then return { state = 'free' } end
  local state, token, node, attempt, at = string.match(raw, '^(%l+) ([%da-f-]+) (%w[%w._-]*) (%d+) (%d+)$')
  if not state or not is_mark(state, token, node, attempt, at) then return nil, { 'corrupt', key, raw } end
  local left = redis.call('PTTL', key)
  if left < 0 and state ~= 'done' then return nil, { 'corrupt', key, 'a mark that never expires; delete it' } end
  return { raw = raw, state = state, token = token, node = node, attempt = tonumber(attempt), at = tonumber(at), left = left }
end

local function is_small_number(raw)
  return #raw <= 9 and string.find(raw, '^%d+$') ~= nil
end

-- The largest attempt in the log: for when the counter is gone.
local function largest_logged()
  local largest = 0
  local fields = redis.call('HGETALL', LOG)
  for i = 1, #fields, 2 do
    local attempt = string.match(fields[i], '^(%d+)')
    if attempt and #attempt <= 9 then largest = math.max(largest, tonumber(attempt)) end
  end
  return largest
end

-- What is kept of this slot beside the others that run; false where nothing is. The key is the job's, not the slot's: one of another type
-- stops every slot of the job, and the error that the server makes of it does not name it.
local function read_own_running()
  local answer = redis.pcall('HGET', RUNNING, KEY)
  if type(answer) ~= 'table' then return answer end
  if string.find(answer.err, 'WRONGTYPE', 1, true) then return nil, { 'corrupt', RUNNING, 'a key of another type' } end
  return redis.call('HGET', RUNNING, KEY)
end

-- All that a decision needs: mark, counter, attempts forgiven. Every key is read here, before any write, so that a key
-- of a foreign type stops a script while nothing has changed.
local function read_slot()
  local mark, bad = read_mark(MARK)
  if bad then return nil, bad end
  local own
  own, bad = read_own_running()
  if bad then return nil, bad end
  local slot = { mark = mark, count = 0, stored = false, forgiven = 0, running = own }
  local forgiven = redis.call('HGET', LOG, 'forgiven')
  if forgiven then
    if not is_small_number(forgiven) then return nil, { 'corrupt', LOG, 'forgiven ' .. forgiven } end
    slot.forgiven = tonumber(forgiven)
  end
  local count = redis.call('GET', ATTEMPTS)
  if count then
    if not is_small_number(count) then return nil, { 'corrupt', ATTEMPTS, count } end
    slot.count, slot.stored = tonumber(count), true
  else
    slot.count = largest_logged()
  end
  slot.used = math.max(0, slot.count - slot.forgiven)
  return slot
end

-- Counter and log are kept for the retention from now on, and at least from the slot's end on.
-- Called before the other writes too: PEXPIRE is allowed when memory is full, and what a script writes after its first
-- write is not refused any more.
local function keep(now)
  local left = text(math.max(now, ENDS) + RETENTION - now)
  redis.call('PEXPIRE', ATTEMPTS, left)
  redis.call('PEXPIRE', LOG, left)
end

-- A record is JSON in which quotes inside of values are escaped, so these can only be its own fields.
local function belongs_to(record, token)
  return string.find(record, '"token":"' .. token .. '"', 1, true) ~= nil
end

local function outcome_of(record)
  return string.match(record, '"outcome":"([%l_]+)"')
end

local function has_ended(record)
  return outcome_of(record) ~= nil
end

local function has_succeeded(record)
  return outcome_of(record) == 'success'
end

-- Where a claim's record stands, and the record: at its number, or beside it when that is another claim's (granted twice
-- because the server lost its data in between).
local function find_run(attempt, token)
  local number = text(attempt)
  for _, field in ipairs({ number, number .. '.' .. string.sub(token, 1, 8) }) do
    local record = redis.call('HGET', LOG, field)
    if not record or belongs_to(record, token) then return field, record end
  end
  local field = number .. '.' .. token
  return field, redis.call('HGET', LOG, field)
end

-- Whether a run under this token has a recorded end. There are as many records as attempts, which are few.
local function is_spent(token, attempts)
  for attempt = 1, attempts do
    local _, record = find_run(attempt, token)
    if record and has_ended(record) then return true end
  end
  return false
end

-- The newest other claim that was granted after this one or in its place, as an answer: it held the slot meanwhile, also if
-- it is over by now. By its number; or by when it was granted (`since` is when this one was): numbers begin anew when the
-- server has lost its data. A run without a guard (attempt 0) is in nobody's place, and nobody is in its.
local function overtaker(attempt, token, since)
  if attempt == 0 then return nil end
  local above, latest, at_latest = nil, nil, since
  local fields = redis.call('HGETALL', LOG)
  for i = 1, #fields, 2 do
    local number, record = string.match(fields[i], '^(%d+)'), fields[i + 1]
    local other = number and #number <= 9 and tonumber(number) or 0
    local node = string.match(record, '"node":"(%w[%w._-]*)"')
    if other > 0 and node and not belongs_to(record, token) then
      local at = tonumber(string.match(record, '"claimed_ms":(%d+)')) or 0
      if other >= attempt and (not above or other > above[3]) then above = { 'overtaken', node, other } end
      if at > at_latest or (latest and at == at_latest and other > latest[3]) then
        latest, at_latest = { 'overtaken', node, other }, at
      end
    end
  end
  return above or latest
end

-- Whether the output of the run was dropped before the record was sent. An end that is sent again so changes nothing where it is
-- recorded already: its output may be kept.
local function is_without_output(record)
  return string.find(record, '"output":{"text":"",', 1, true) ~= nil
end

-- Whether this record of a claim takes the place of the one that stands; where that is, and the one that stands. An end is never
-- overwritten by the lack of one, nor success by anything else (I7).
local function is_replaced(attempt, token, record)
  local field, old = find_run(attempt, token)
  if old and has_ended(old) and outcome_of(old) == outcome_of(record) and is_without_output(record) then return false end
  if old and has_succeeded(old) and not has_succeeded(record) then return false end
  if old and has_ended(old) and not has_ended(record) then return false end
  return true, field, old
end

-- Answers the outcome, where it was not recorded before.
local function write_run(attempt, token, record)
  local replaces, field, old = is_replaced(attempt, token, record)
  if not replaces then return nil end
  redis.call('HSET', LOG, field, record)
  local outcome = outcome_of(record)
  if old and outcome_of(old) == outcome then return nil end
  return outcome
end

-- The record of a claim at the moment of its grant.
local function begun(attempt, token, node, trigger, at)
  return '{"attempt":' .. text(attempt) .. ',"token":"' .. token .. '","node":"' .. node .. '","trigger":"' .. trigger
    .. '","claimed_ms":' .. text(at) .. '}'
end

-- What runs of the job stands in one hash, a field for each slot that is leased: `<token> <node> <attempt> <until, ms>`. So an
-- exclusive claim looks at what runs, and at nothing else. A field follows the mark of its slot: it is written in the step that
-- sets or prolongs a lease, removed in the step that ends it, and does not count after the instant in it.
-- PEXPIRE is allowed when memory is full, and what comes after it is not refused any more: a renewal goes through.
local function note_running(token, node, attempt, ttl)
  local left = redis.call('PTTL', RUNNING)
  if left < ttl then redis.call('PEXPIRE', RUNNING, text(ttl)) end
  redis.call('HSET', RUNNING, KEY, token .. ' ' .. node .. ' ' .. text(attempt) .. ' ' .. text(now_ms() + ttl))
  if left == -2 then redis.call('PEXPIRE', RUNNING, text(ttl)) end
end

local function write_mark(state, token, node, attempt, at, ttl)
  redis.call('SET', MARK, state .. ' ' .. token .. ' ' .. node .. ' ' .. text(attempt) .. ' ' .. text(at), 'PX', ttl)
  if state == 'running' then
    note_running(token, node, attempt, tonumber(ttl))
  else
    redis.call('HDEL', RUNNING, KEY)
  end
end

local function clear_mark()
  redis.call('DEL', MARK)
  redis.call('HDEL', RUNNING, KEY)
end

-- Makes a lease that stands last for `ttl` from now on; never shortens it.
local function prolong_mark(mark, ttl)
  ttl = tonumber(ttl)
  if mark.left < ttl then redis.call('PEXPIRE', MARK, text(ttl)) end
  note_running(mark.token, mark.node, mark.attempt, math.max(mark.left, ttl))
end

-- What else runs of the job: the oldest other slot, as the end of an answer, and the fields that have ended by their time.
local function read_running(now)
  local oldest, answer, ended = nil, nil, {}
  local fields = redis.call('HGETALL', RUNNING)
  for i = 1, #fields, 2 do
    local key, raw = fields[i], fields[i + 1]
    local token, node, attempt, till = string.match(raw, '^(%x+) (%w[%w._-]*) (%d+) (%d+)$')
    local own = token and #till <= 15 and is_mark('running', token, node, attempt, till)
    if not own or not string.find(key, '^%d%d%d%d%-%d%d%-%d%dT[%d:]+Z$') then
      return nil, { 'corrupt', RUNNING, key .. ' ' .. raw }
    end
    -- Without its last letter a key that another one begins with is the smaller one, as its instant is.
    local cut = string.sub(key, 1, -2)
    if key ~= KEY and tonumber(till) <= now then
      ended[#ended + 1] = key
    elseif key ~= KEY and (not oldest or cut < oldest) then
      oldest = cut
      answer = { key, 'running ' .. token .. ' ' .. node .. ' ' .. attempt .. ' ' .. till, tonumber(till) - now }
    end
  end
  return { other = answer, ended = ended }
end

-- A done marker that says what the recorded verdict says, where that is `done`: the marker itself may be lost.
local function marker_of_verdict()
  local verdict = redis.call('HGET', LOG, 'verdict')
  if not verdict or not string.find(verdict, '"verdict":"done"', 1, true) then return nil end
  local by, at = string.match(verdict, '"by":"(%w[%w._-]*)"'), string.match(verdict, '"at_ms":(%d+)')
  if not by or not at then return nil, { 'corrupt', LOG, 'verdict ' .. verdict } end
  return 'done - ' .. by .. ' ' .. (string.match(verdict, '"attempt":(%d+)') or '0') .. ' ' .. at
end

-- The newest attempt, where it counts, is this token's, its run has no recorded end, and no other claim has its number: the
-- claim's answer may have been lost. Answers its number and when it was granted.
local function unanswered(token, slot)
  if slot.used == 0 then return nil end
  local _, record = find_run(slot.count, token)
  local at = record and tonumber(string.match(record, '"claimed_ms":(%d+)'))
  if not at or is_spent(token, slot.count) or overtaker(slot.count, token, at) then return nil end
  return slot.count, at
end

-- The verdict `done`, over whatever was recorded; the first to record it stays.
local function write_done_verdict(by, attempt, now)
  local old = redis.call('HGET', LOG, 'verdict')
  if old and string.find(old, '"verdict":"done"', 1, true) then return end
  redis.call('HSET', LOG, 'verdict', '{"verdict":"done","by":"' .. by .. '","at_ms":' .. text(now) .. ',"attempt":'
    .. text(attempt) .. '}')
end

-- Appends an operator's verb; `head` is its JSON up to the time.
local function write_audit(head, now)
  local n = 1
  while redis.call('HGET', LOG, 'audit.' .. n) do n = n + 1 end
  redis.call('HSET', LOG, 'audit.' .. n, head .. text(now) .. '}')
end
