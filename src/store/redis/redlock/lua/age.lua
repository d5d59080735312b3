-- Put before every script whose answer is counted. KEYS[#KEYS] has since when this server remembers: `<run id> <ms>`. A
-- restart has another run id, a wipe no key at all: either may have lost what was acknowledged.
local function age_ms()
  local now, run = now_ms(), string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  local known, since = string.match(redis.call('GET', KEYS[#KEYS]) or '', '^(%x+) (%d+)$')
  if known == run and run and tonumber(since) <= now then return now - tonumber(since) end
  redis.call('SET', KEYS[#KEYS], (run or '-') .. ' ' .. text(now))
  return 0
end

-- KEYS[#KEYS - 1] has the longest lease that was asked for of this job; `lease` is what is asked for now, in ms. It is kept far
-- beyond that lease's end, so whatever is overwritten by a shorter one was over before.
local function longest_ms(lease)
  local key = KEYS[#KEYS - 1]
  local known, left = tonumber(redis.call('GET', key) or '') or 0, redis.call('PTTL', key)
  local lasts = math.max(tonumber(ARGV[3]), 4 * lease)
  if lease > known or left < lease or (lease == known and left < lasts / 2) then
    redis.call('SET', key, text(lease), 'PX', text(lasts))
  end
  return math.max(known, lease)
end

