-- The runs of many slots without their outputs, asked as in slots_read.sql: those in the slots' rows, and the others. The output
-- is a record's last field, and quotes inside of values are escaped, so what is cut off can only be that field. Tables that were made and changed by
-- servers of different versions may have different collations.
WITH slot AS (
    SELECT asked.namespace, slot.job COLLATE ascii_bin AS job, slot.start_ms
    FROM (SELECT CONVERT(? USING ascii) COLLATE ascii_bin AS namespace, ? AS slots) AS asked
    JOIN json_table(asked.slots, '$[*]' COLUMNS (
        job      VARCHAR(64) CHARACTER SET ascii PATH '$[0]',
        start_ms BIGINT PATH '$[1]'
    )) AS slot
)
SELECT STRAIGHT_JOIN s.job, s.start_ms, concat(
    substring_index(s.run_record COLLATE utf8mb4_bin, ',"output":{', 1),
    if(locate(',"output":{', s.run_record COLLATE utf8mb4_bin) > 0, '}', '')
) AS record
FROM slot
JOIN cronward_slots AS s ON s.namespace = slot.namespace AND s.job = slot.job AND s.start_ms = slot.start_ms
WHERE s.run_record IS NOT NULL
UNION ALL
SELECT STRAIGHT_JOIN t.job, t.start_ms, concat(
    substring_index(t.record, ',"output":{', 1),
    if(locate(',"output":{', t.record) > 0, '}', '')
)
FROM slot
JOIN cronward_runs AS t ON t.namespace = slot.namespace AND t.job = slot.job AND t.start_ms = slot.start_ms
LEFT JOIN cronward_slots AS s
    ON s.namespace = t.namespace AND s.job = t.job AND s.start_ms = t.start_ms
    AND s.run_attempt = t.attempt AND s.run_token = t.token
WHERE s.job IS NULL
