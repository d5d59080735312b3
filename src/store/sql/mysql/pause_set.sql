-- Sets a job's pause in place of an earlier one.
INSERT INTO cronward_pauses (namespace, job, since_ms, until_ms, audit)
VALUES (?, ?, ?, ?, ?)
ON DUPLICATE KEY UPDATE since_ms = VALUES(since_ms), until_ms = VALUES(until_ms), audit = VALUES(audit)
