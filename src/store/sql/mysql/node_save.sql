-- A node's last report; one per name.
INSERT INTO cronward_nodes (namespace, name, instance, seen_ms, report)
VALUES (?, ?, ?, ?, ?)
ON DUPLICATE KEY UPDATE instance = VALUES(instance), seen_ms = VALUES(seen_ms), report = VALUES(report)
