-- Removes nodes that were last seen at or before $2. One that somebody else removes is left to them.
DELETE FROM cronward_nodes
WHERE (namespace, name) IN (
    SELECT namespace, name FROM cronward_nodes WHERE namespace = $1 AND seen_ms <= $2 FOR UPDATE SKIP LOCKED
)
