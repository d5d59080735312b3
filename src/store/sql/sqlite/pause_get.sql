-- A job's last pause.
SELECT job, since_ms, until_ms, audit FROM pauses WHERE namespace = ?1 AND job = ?2
