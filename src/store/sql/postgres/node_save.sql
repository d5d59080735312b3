-- A node's last report; one per name.
INSERT INTO cronward_nodes (namespace, name, instance, seen_ms, report)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (namespace, name) DO UPDATE SET
    instance = excluded.instance, seen_ms = excluded.seen_ms, report = excluded.report
