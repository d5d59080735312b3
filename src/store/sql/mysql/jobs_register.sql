-- Makes the registry know jobs; first_seen_ms of a known name is kept, and so is an entry of a file where the new one is from
-- elsewhere: only such a one says where it is from, and quotes inside of values are escaped. Asked are the namespace, the time,
-- and a JSON array of [name, entry]. A column that names no character set has the server's, which may lack most letters. WHERE
-- TRUE tells the parser that ON begins no join.
INSERT INTO cronward_jobs (namespace, name, first_seen_ms, entry)
SELECT asked.namespace, job.name, asked.now_ms, job.entry
FROM (SELECT CONVERT(? USING ascii) AS namespace, CAST(? AS SIGNED) AS now_ms, ? AS jobs) AS asked
JOIN json_table(asked.jobs, '$[*]' COLUMNS (
    name  VARCHAR(64) CHARACTER SET ascii PATH '$[0]',
    entry LONGTEXT CHARACTER SET utf8mb4 PATH '$[1]'
)) AS job
WHERE TRUE
ON DUPLICATE KEY UPDATE entry = IF(
    LOCATE('"origin":"', VALUES(entry)) > 0 AND LOCATE('"origin":"', cronward_jobs.entry) = 0,
    cronward_jobs.entry,
    VALUES(entry)
)
