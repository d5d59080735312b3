-- The registry beside the slots: jobs, nodes, and which jobs are paused. One function for each script, which is called after this.

-- Makes the registry know jobs. The earliest time at which a name was seen stays: the known one, the caller's, or now where the
-- name is new. What a file's daemon said stays where the entry is from elsewhere.
-- KEYS 1 jobs; ARGV for each job: name, its JSON up to that time, that time (ms)
local function register()
  local now = now_ms()

  -- Only an entry from elsewhere says where it is from. Quotes inside of values are escaped, so this can only be its own field.
  local function is_of_file(entry)
    return string.find(entry, '"origin":"', 1, true) == nil
  end

  for i = 1, #ARGV, 3 do
    local known = redis.call('HGET', KEYS[1], ARGV[i])
    if not known or is_of_file(ARGV[i + 1]) or not is_of_file(known) then
      local seen = known and tonumber(string.match(known, '"first_seen_ms":(%-?%d+)}$')) or now
      local first_seen = text(math.min(seen, tonumber(ARGV[i + 2])))
      redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1] .. first_seen .. '}')
    end
  end
  return { 'registered' }
end

-- Records that a node is alive, and forgets those not heard of for the retention. Answers whether the name was known.
-- KEYS 1 nodes; ARGV 1 name, 2 its JSON up to the time, 3 retention (ms)
local function heartbeat()
  local now = now_ms()
  local nodes = redis.call('HGETALL', KEYS[1])
  for i = 1, #nodes, 2 do
    local seen = tonumber(string.match(nodes[i + 1], '"seen_ms":(%d+)}$'))
    if seen and seen + tonumber(ARGV[3]) <= now then redis.call('HDEL', KEYS[1], nodes[i]) end
  end
  local added = redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. text(now) .. '}')
  return { 'alive', now, 1 - added }
end

-- Every node, with the clock.
-- KEYS 1 nodes
local function nodes()
  return { now_ms(), redis.call('HGETALL', KEYS[1]) }
end

-- Operator: no slot of the job is granted for a while.
-- KEYS 1 the job's pause; ARGV 1 job, 2 channel, 3 until (ms, or null), 4 the verb's JSON up to the time
local function pause()
  local now = text(now_ms())
  redis.call('SET', KEYS[1], '{"since_ms":' .. now .. ',"until_ms":' .. ARGV[3] .. ',"audit":' .. ARGV[4] .. now .. '}}')
  publish(ARGV[2], 'job ' .. ARGV[1])
  tell_change(ARGV[2], 'job ' .. ARGV[1])
  return { 'applied' }
end

-- A job's last pause, with the clock.
-- KEYS 1 the job's pause
local function pause_of()
  return { now_ms(), redis.call('GET', KEYS[1]) }
end

-- Operator: ends the pause now. The record then names who ended it, too.
-- KEYS 1 the job's pause; ARGV 1 job, 2 channel, 3 the verb's JSON up to the time
local function resume()
  local now = now_ms()
  local pause = redis.call('GET', KEYS[1])
  if not pause then return { 'unchanged' } end
  local since, till = read_pause(pause)
  if not since then return { 'corrupt', KEYS[1], pause } end
  if till <= now then return { 'unchanged' } end
  -- One that lasts has nobody who ended it: what follows its end is who began it, and nothing else.
  local begun = string.match(pause, '^{"since_ms":%-?%d+,"until_ms":[%d%l-]+,(.+)}$')
  if not begun then return { 'corrupt', KEYS[1], pause } end
  redis.call('SET', KEYS[1], '{"since_ms":' .. text(since) .. ',"until_ms":' .. text(now) .. ',' .. begun .. ',"ended":'
    .. ARGV[3] .. text(now) .. '}}')
  publish(ARGV[2], 'job ' .. ARGV[1])
  tell_change(ARGV[2], 'job ' .. ARGV[1])
  return { 'applied' }
end
