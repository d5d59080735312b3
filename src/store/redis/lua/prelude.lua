-- Put before every script.

-- The server's clock, in milliseconds: the only clock that judges.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- A whole number in full: Lua's own form turns long ones into 1.7e+12.
local function text(number)
  return string.format('%.0f', number)
end

-- A wake-up is only a hint: a user who may not publish loses no more than that.
local function publish(channel, message)
  redis.pcall('PUBLISH', channel, message)
end

-- For whoever looks on: what to look at again. `channel` is that of wake-ups; nobody may be listening at the other.
local function tell_change(channel, message)
  publish(string.sub(channel, 1, -#'wake' - 1) .. 'events', message)
end

-- A stored pause: from when, and until when (for ever: math.huge). Nil when it is none of cronward's.
local function read_pause(raw)
  local since, till = string.match(raw, '^{"since_ms":(%-?%d+),"until_ms":([%d%l-]+),')
  if till == 'null' then return tonumber(since), math.huge end
  if not till or not string.find(till, '^%-?%d+$') then return nil end
  return tonumber(since), tonumber(till)
end
