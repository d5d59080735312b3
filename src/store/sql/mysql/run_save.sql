-- Writes a run's record, in place of an earlier one of the same claim.
INSERT INTO cronward_runs (namespace, job, start_ms, attempt, token, record)
VALUES (?, ?, ?, ?, ?, ?)
ON DUPLICATE KEY UPDATE record = VALUES(record)
