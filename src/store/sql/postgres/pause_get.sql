-- A job's last pause; nobody else changes it until this transaction ends.
SELECT job, since_ms, until_ms, audit FROM cronward_pauses WHERE namespace = $1 AND job = $2 FOR UPDATE
