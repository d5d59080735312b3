-- Every node that was seen after $2, by name.
SELECT name, seen_ms, report FROM cronward_nodes WHERE namespace = $1 AND seen_ms > $2 ORDER BY name
