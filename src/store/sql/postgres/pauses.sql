-- Every job's last pause, by name.
SELECT job, since_ms, until_ms, audit FROM cronward_pauses WHERE namespace = $1 ORDER BY job
