-- Keeps pages of notes on slots, for people; of each slot the newest so many. No other script reads them. HSET comes first: it
-- is refused when memory is full, and notes are what can be done without then.
-- KEYS the notes of a slot each; ARGV 1 retention (ms), 2 how many pages of a slot are kept, then for each key three:
-- end of the slot (ms), the page's id, the page
local now, retention, most = now_ms(), tonumber(ARGV[1]), tonumber(ARGV[2])

-- Removes the pages whose last note is the oldest.
local function trim(key)
  local fields, pages = redis.call('HGETALL', key), {}
  for i = 1, #fields, 2 do
    pages[#pages + 1] = { id = fields[i], last = tonumber(string.match(fields[i + 1], '^{"last_ms":(%d+)')) or 0 }
  end
  table.sort(pages, function(a, b) return a.last < b.last or (a.last == b.last and a.id < b.id) end)
  for i = 1, #pages - most do redis.call('HDEL', key, pages[i].id) end
end

for i, key in ipairs(KEYS) do
  local ends, id, page = ARGV[3 * i], ARGV[3 * i + 1], ARGV[3 * i + 2]
  redis.call('HSET', key, id, page)
  redis.call('PEXPIRE', key, text(math.max(now, tonumber(ends)) + retention - now))
  trim(key)
end
return { 'noted' }
