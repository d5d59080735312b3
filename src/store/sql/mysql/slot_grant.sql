-- Grants a slot of which there is no row yet, if it has begun and is not over, its job is not paused, and, where it has to run
-- alone, no other slot of the job is leased: one row, with its run in it, and the job's next turn. Whatever else the slot is, nothing is written. Asked are the values of slot_load.sql,
-- then the rest of the row and the run as they would be had the slot been granted at its start: the instants of the grant
-- become the server's clock, which is answered as the number of this insertion (the servers' own idiom, there being no
-- RETURNING in MySQL). No instant is later than the last that there is. Fails when there is a row
-- by now, or the turn is taken.
INSERT INTO cronward_slots (
    namespace, job, start_ms, end_ms, counter, forgiven,
    mark, mark_token, mark_node, mark_attempt, mark_since_ms, mark_until_ms, verdict, touched_ms, version,
    run_attempt, run_token, run_record, turn
)
SELECT
    asked.namespace, asked.job, asked.start_ms, asked.end_ms, asked.counter, asked.forgiven,
    asked.mark, asked.mark_token, asked.mark_node, asked.mark_attempt,
    now_ms, least(asked.until_ms + now_ms - asked.since_ms, 8210266876799999),
    asked.verdict, asked.touched_ms, last_insert_id(now_ms),
    asked.run_attempt, asked.run_token,
    replace(asked.run_record, concat('"claimed_ms":', asked.since_ms), concat('"claimed_ms":', now_ms)),
    if(asked.alone,
        1 + coalesce(
            (SELECT t.turn FROM cronward_slots AS t
              WHERE t.namespace = asked.namespace AND t.job = asked.job AND t.turn IS NOT NULL
              ORDER BY t.turn DESC LIMIT 1),
            0),
        NULL)
FROM (
    SELECT
        timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(3)) DIV 1000 AS now_ms,
        CONVERT(? USING ascii) COLLATE ascii_bin AS namespace, CONVERT(? USING ascii) COLLATE ascii_bin AS job,
        CAST(? AS SIGNED) AS start_ms, CAST(? AS SIGNED) AS alone,
        CAST(? AS SIGNED) AS end_ms, ? AS counter, ? AS forgiven, ? AS mark, ? AS mark_token, ? AS mark_node,
        ? AS mark_attempt, CAST(? AS SIGNED) AS since_ms, CAST(? AS SIGNED) AS until_ms, ? AS verdict,
        ? AS touched_ms, ? AS run_attempt, ? AS run_token, CONVERT(? USING utf8mb4) AS run_record
) AS asked
LEFT JOIN cronward_pauses AS p ON p.namespace = asked.namespace AND p.job = asked.job
WHERE now_ms >= asked.start_ms AND now_ms < asked.end_ms
    AND NOT (p.since_ms IS NOT NULL AND coalesce(p.until_ms > now_ms, TRUE))
    AND NOT EXISTS (
        SELECT 1 FROM cronward_slots AS s
        WHERE s.namespace = asked.namespace AND s.job = asked.job AND s.start_ms = asked.start_ms
    )
    AND NOT (asked.alone AND EXISTS (
        SELECT 1 FROM cronward_slots AS o
        WHERE o.namespace = asked.namespace AND o.job = asked.job AND o.mark = 'lease'
            AND o.start_ms <> asked.start_ms AND o.mark_until_ms > now_ms
    ))
