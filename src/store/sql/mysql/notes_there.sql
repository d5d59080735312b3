-- The pages of many slots without what is in them, asked as in slots_read.sql.
SELECT STRAIGHT_JOIN
    t.job, t.start_ms, t.page, t.last_ms
FROM (SELECT CONVERT(? USING ascii) COLLATE ascii_bin AS namespace, ? AS slots) AS asked
JOIN json_table(asked.slots, '$[*]' COLUMNS (
    job      VARCHAR(64) CHARACTER SET ascii PATH '$[0]',
    start_ms BIGINT PATH '$[1]'
)) AS slot
JOIN cronward_notes AS t
    ON t.namespace = asked.namespace AND t.job = slot.job COLLATE ascii_bin AND t.start_ms = slot.start_ms
