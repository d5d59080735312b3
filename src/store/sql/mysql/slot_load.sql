-- One row, as of one instant: the server's clock; a slot's row with the run in it, and the other runs' records, NULL where there is
-- none; the job's last pause; and where it has to run alone, the oldest of the job's other slots that is leased, and its last
-- turn. Asked are the slot, and whether it has to run alone. Records are without their outputs, as in runs_read.sql; where the run
-- in the row is among the others as well, theirs is the older form.
SELECT
    asked.now_ms, s.version, s.counter, s.forgiven, s.mark, s.mark_token, s.mark_node, s.mark_attempt, s.mark_since_ms,
    s.mark_until_ms, s.verdict, s.touched_ms, s.run_attempt, s.run_token, concat(
        substring_index(s.run_record COLLATE utf8mb4_bin, ',"output":{', 1),
        if(locate(',"output":{', s.run_record COLLATE utf8mb4_bin) > 0, '}', '')
    ) AS run_record,
    (SELECT CONVERT(json_arrayagg(concat(
                substring_index(r.record, ',"output":{', 1),
                if(locate(',"output":{', r.record) > 0, '}', '')
            )) USING utf8mb4)
       FROM cronward_runs AS r
      WHERE r.namespace = asked.namespace AND r.job = asked.job AND r.start_ms = asked.start_ms) AS runs,
    p.since_ms, p.until_ms, p.audit,
    if(asked.alone,
        (SELECT CONVERT(json_object(
                'start_ms', o.start_ms, 'mark', o.mark, 'mark_token', o.mark_token, 'mark_node', o.mark_node,
                'mark_attempt', o.mark_attempt, 'mark_since_ms', o.mark_since_ms, 'mark_until_ms', o.mark_until_ms)
                USING utf8mb4)
           FROM cronward_slots AS o
          WHERE o.namespace = asked.namespace AND o.job = asked.job AND o.mark = 'lease'
            AND o.start_ms <> asked.start_ms AND o.mark_until_ms > asked.now_ms
          ORDER BY o.start_ms LIMIT 1),
        NULL) AS other,
    if(asked.alone,
        (SELECT o.turn FROM cronward_slots AS o
          WHERE o.namespace = asked.namespace AND o.job = asked.job AND o.turn IS NOT NULL
          ORDER BY o.turn DESC LIMIT 1),
        NULL) AS turn
FROM (
    SELECT
        timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(3)) DIV 1000 AS now_ms,
        CONVERT(? USING ascii) COLLATE ascii_bin AS namespace, CONVERT(? USING ascii) COLLATE ascii_bin AS job,
        CAST(? AS SIGNED) AS start_ms, CAST(? AS SIGNED) AS alone
) AS asked
LEFT JOIN cronward_slots AS s
    ON s.namespace = asked.namespace AND s.job = asked.job AND s.start_ms = asked.start_ms
LEFT JOIN cronward_pauses AS p ON p.namespace = asked.namespace AND p.job = asked.job
