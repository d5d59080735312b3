-- Makes the registry know jobs; first_seen_ms of a known name is kept. Asked are the namespace, the time, and a JSON array of
-- [name, entry]. WHERE TRUE tells the parser that ON begins no join.
INSERT INTO cronward_jobs (namespace, name, first_seen_ms, entry)
SELECT asked.namespace, job.name, asked.now_ms, job.entry
FROM (SELECT CONVERT(? USING ascii) AS namespace, CAST(? AS SIGNED) AS now_ms, ? AS jobs) AS asked
JOIN json_table(asked.jobs, '$[*]' COLUMNS (
    name  VARCHAR(64) PATH '$[0]',
    entry LONGTEXT PATH '$[1]'
)) AS job
WHERE TRUE
ON DUPLICATE KEY UPDATE entry = VALUES(entry)
