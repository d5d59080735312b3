-- Removes the runs of a slot whose records are older than the retention.
DELETE FROM cronward_runs WHERE namespace = ? AND job = ? AND start_ms = ?
