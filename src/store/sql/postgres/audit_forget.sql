-- Removes the audit of a slot whose records are older than the retention.
DELETE FROM cronward_audit WHERE namespace = $1 AND job = $2 AND start_ms = $3
