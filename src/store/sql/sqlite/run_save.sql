-- Writes a run's record, in place of an earlier one of the same claim.
INSERT INTO runs (namespace, job, start_ms, attempt, token, record)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (namespace, job, start_ms, attempt, token) DO UPDATE SET record = excluded.record
