-- What is known of a topic's messages: one JSON text. What a claim of a message comes to is decided by the caller, from what it read,
-- and written under the condition that nothing has changed since. One function for each script, which is called after this.

-- The text, with the clock, and a digest by which it is told from another.
-- KEYS 1 the topic's messages
local function read_messages()
  local known = redis.call('GET', KEYS[1])
  return { now_ms(), known, redis.sha1hex(known or '') }
end

-- Writes the text, unless another stands there than the one that was read. It is kept for the retention after its last change.
-- KEYS 1 the topic's messages; ARGV 1 the digest of what was read, 2 the text, 3 retention (ms)
local function write_messages()
  if redis.sha1hex(redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return { 'changed' } end
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
  return { 'written' }
end
