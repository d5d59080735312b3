-- Removes nodes that were last seen at or before ?2.
DELETE FROM nodes WHERE namespace = ?1 AND seen_ms <= ?2
