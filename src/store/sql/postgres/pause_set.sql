-- Sets a job's pause in place of an earlier one.
INSERT INTO cronward_pauses (namespace, job, since_ms, until_ms, audit)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (namespace, job) DO UPDATE SET
    since_ms = excluded.since_ms, until_ms = excluded.until_ms, audit = excluded.audit
