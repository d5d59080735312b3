-- The rows of many slots. Asked are the namespace, and a JSON array of [job, start_ms].
SELECT STRAIGHT_JOIN
    t.job, t.start_ms, t.counter, t.forgiven, t.mark, t.mark_token, t.mark_node, t.mark_attempt, t.mark_since_ms,
    t.mark_until_ms, t.verdict, t.touched_ms
FROM (SELECT CONVERT(? USING ascii) COLLATE ascii_bin AS namespace, ? AS slots) AS asked
JOIN json_table(asked.slots, '$[*]' COLUMNS (
    job      VARCHAR(64) CHARACTER SET ascii PATH '$[0]',
    start_ms BIGINT PATH '$[1]'
)) AS slot
JOIN cronward_slots AS t
    ON t.namespace = asked.namespace AND t.job = slot.job COLLATE ascii_bin AND t.start_ms = slot.start_ms
