-- A job's last pause; nobody else changes it until this transaction ends.
SELECT job, since_ms, until_ms, audit FROM cronward_pauses WHERE namespace = ? AND job = ? FOR UPDATE
