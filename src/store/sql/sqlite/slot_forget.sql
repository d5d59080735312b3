-- Removes a slot whose records are older than the retention, with its runs and its audit (ON DELETE CASCADE).
DELETE FROM slots WHERE namespace = ?1 AND job = ?2 AND start_ms = ?3
