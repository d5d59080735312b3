-- Every node that was seen after the instant, by name.
SELECT name, seen_ms, report FROM cronward_nodes WHERE namespace = ? AND seen_ms > ? ORDER BY name
