-- Removes the audit of a slot whose records are older than the retention.
DELETE FROM cronward_audit WHERE namespace = ? AND job = ? AND start_ms = ?
