-- Every node, with the clock.
-- KEYS 1 nodes
return { now_ms(), redis.call('HGETALL', KEYS[1]) }
