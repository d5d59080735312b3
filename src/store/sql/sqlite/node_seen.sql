-- The last heartbeat of any other instance, other names' and this name's earlier one.
SELECT max(seen_ms) AS last_ms FROM nodes WHERE namespace = ?1 AND NOT (name = ?2 AND instance = ?3)
