-- Removes nodes that were last seen at or before the instant.
DELETE FROM cronward_nodes WHERE namespace = ? AND seen_ms <= ?
