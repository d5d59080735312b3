-- Copies the run in a slot's row to the others, before one of another claim takes its place, if the row still has the version
-- that was read; locked, because an older copy must not come after a newer one. Alone it changes nothing: what is read is the
-- row's.
INSERT INTO cronward_runs (namespace, job, start_ms, attempt, token, record)
SELECT namespace, job, start_ms, run_attempt, run_token, run_record
FROM cronward_slots AS s
WHERE namespace = ? AND job = ? AND start_ms = ? AND version = ? AND run_record IS NOT NULL
LOCK IN SHARE MODE
ON DUPLICATE KEY UPDATE record = s.run_record
