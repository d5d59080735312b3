-- What the job has come to lately: one JSON text, `JobLatest`, whose rules these are. It stands beside the slots, and no rule
-- asks for it: nothing is refused for its sake, and what cannot be read is left as it is, for whoever reads it to be told.
-- KEYS 5 its key
local LATEST = KEYS[5]

-- For how long it is kept after its last change (ms).
local LATEST_KEPT = 400 * 86400000

-- A slot's start as a number that grows with time: the digits of its key, down to the second. Texts are compared as the server's
-- locale has it. What is no text is an error.
local function start_of(key)
  local digits = key:gsub('%D', '')
  return tonumber(digits .. string.rep('0', 14 - #digits))
end
local START = start_of(KEY)

local FAILURES = { failed = true, missed = true }

-- The slot is done.
local function set_done(latest, at)
  local newest, failing = latest.success, latest.failing
  if not newest or start_of(newest.slot) < START then latest.success = { slot = KEY, at_ms = at } end
  if failing and start_of(failing.last) <= START then
    latest.failing = nil
  elseif failing and start_of(failing.since) <= START then
    -- What was between the two is not kept: the newest is known to have failed.
    failing.since, failing.slots = failing.last, 1
  end
end

-- A run of the slot has ended; without an outcome nothing has that was not known.
local function set_ended(latest, at, outcome)
  local last = latest['end']
  if outcome and (not last or last.at_ms <= at) then latest['end'] = { slot = KEY, at_ms = at, outcome = outcome } end
end

-- The slot has got its verdict. Verdicts come in any order.
local function set_closed(latest, verdict)
  local newest, failing = latest.success, latest.failing
  if not FAILURES[verdict] or (newest and start_of(newest.slot) >= START) then return end
  if not failing then
    latest.failing = { since = KEY, last = KEY, verdict = verdict, slots = 1 }
    return
  end
  -- The last one itself: what was kept of the slot is older than the retention, and it was closed once more.
  if failing.last ~= KEY then failing.slots = failing.slots + 1 end
  if start_of(failing.last) <= START then failing.last, failing.verdict = KEY, verdict end
  if START < start_of(failing.since) then failing.since = KEY end
end

-- An operator opened the slot again, which had this verdict.
local function set_reopened(latest, verdict)
  local failing = latest.failing
  if not FAILURES[verdict] or not failing or START < start_of(failing.since) then return end
  failing.slots = failing.slots - 1
  if failing.last == KEY then failing.last = failing.since end
  if failing.slots <= 0 then latest.failing = nil end
end

-- What a change makes of it; nil where it stays the same, and an error where it is none of cronward's.
local function changed(raw, change)
  local latest = cjson.decode(raw)
  for _, part in pairs(latest) do start_of(part.slot or part.last) end
  local before = cjson.encode(latest)
  change(latest)
  local after = cjson.encode(latest)
  return after ~= before and after or nil
end

-- Changes it. To be called after a script's first write, which alone is refused when memory is full.
local function change_latest(change)
  local readable, after = pcall(changed, redis.pcall('GET', LATEST) or '{}', change)
  if readable and after then redis.call('SET', LATEST, after, 'PX', text(LATEST_KEPT)) end
end
