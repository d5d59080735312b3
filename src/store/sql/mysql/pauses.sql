-- Every job's last pause, by name.
SELECT job, since_ms, until_ms, audit FROM cronward_pauses WHERE namespace = ? ORDER BY job
