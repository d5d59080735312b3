-- The whole record of one run.
SELECT record FROM cronward_runs WHERE namespace = $1 AND job = $2 AND start_ms = $3 AND attempt = $4 AND token = $5
