-- The end of a run's output, beside the records: no rule reads it. It is kept where the server has room for it, and nothing is
-- refused for its sake: a record whose output went says how long that was.
-- KEYS among them the slot's outputs, known by its name
-- ARGV the last three: the field of this run's output, the output's JSON (empty: none), the bytes of the whole output

local OUTPUTS
for _, key in ipairs(KEYS) do
  if key == MARK .. ':outputs' then OUTPUTS = key end
end

-- Room that outputs leave to leases and records, as a share of maxmemory.
local SPARED = 0.1

-- Whether the server has room. A user who may not ask hears it from the write itself.
local function has_room(bytes)
  local info = redis.pcall('INFO', 'memory')
  if type(info) ~= 'string' then return true end
  local used, limit = string.match(info, 'used_memory:(%d+)'), string.match(info, 'maxmemory:(%d+)')
  used, limit = tonumber(used), tonumber(limit)
  return not used or not limit or limit == 0 or used + bytes < limit * (1 - SPARED)
end

-- Keeps the output, and answers the record as it is to be written then. To be called before the first write: only a script's
-- first write is refused when memory is full. A record that is not replaced keeps its output.
local function keep_output(attempt, token, record, now)
  local field, output, bytes = ARGV[#ARGV - 2], ARGV[#ARGV - 1], ARGV[#ARGV]
  if output == '' or not is_replaced(attempt, token, record) then return record end
  if has_room(#output) and type(redis.pcall('HSET', OUTPUTS, field, output)) ~= 'table' then
    redis.call('PEXPIRE', OUTPUTS, text(math.max(now, ENDS) + RETENTION - now))
    return record
  end
  redis.pcall('HDEL', OUTPUTS, field)
  return string.sub(record, 1, -2) .. ',"output":{"text":"","dropped_bytes":' .. bytes .. ',"loss":"store_full"}}'
end
