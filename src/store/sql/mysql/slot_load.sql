-- One row, as of one instant: the server's clock; a slot's row with the run in it, and what a rule needs of the other runs, NULL
-- where there is none (what comes of all of them together: src/store/sql/last_run.rs); the job's last pause; and where it has to
-- run alone, the oldest of the job's other slots that is leased, and its last turn. Asked are the slot, the token and the attempt
-- of the request's lease, and whether it has to run alone. Without an attempt, the token's newest run is its own; without either,
-- the mark's is.
SELECT
    asked.now_ms, s.version, s.counter, s.forgiven, s.mark, s.mark_token, s.mark_node, s.mark_attempt, s.mark_since_ms,
    s.mark_until_ms, s.verdict, s.touched_ms, s.run_attempt, s.run_token, s.run_record,
    (SELECT max(r.attempt) FROM cronward_runs AS r
      WHERE r.namespace = asked.namespace AND r.job = asked.job AND r.start_ms = asked.start_ms) AS newest,
    (SELECT max(r.attempt) FROM cronward_runs AS r
      WHERE r.namespace = asked.namespace AND r.job = asked.job AND r.start_ms = asked.start_ms
        AND r.token <> asked.token) AS newest_other,
    (SELECT json_unquote(json_extract(r.record, '$.node')) FROM cronward_runs AS r
      WHERE r.namespace = asked.namespace AND r.job = asked.job AND r.start_ms = asked.start_ms
        AND r.token <> asked.token
      ORDER BY r.attempt DESC LIMIT 1) AS newest_other_node,
    (SELECT r.record FROM cronward_runs AS r
      WHERE r.namespace = asked.namespace AND r.job = asked.job AND r.start_ms = asked.start_ms
        AND r.token <> asked.token AND r.attempt > 0
      ORDER BY CAST(json_unquote(json_extract(r.record, '$.claimed_ms')) AS SIGNED) DESC, r.attempt DESC
      LIMIT 1) AS latest_other,
    -- A record is JSON in which quotes inside of values are escaped, so this can only be its own field.
    (SELECT count(*) FROM cronward_runs AS r
      WHERE r.namespace = asked.namespace AND r.job = asked.job AND r.start_ms = asked.start_ms
        AND r.token = asked.token AND r.record LIKE '%"outcome":"%') AS spent,
    (SELECT r.record FROM cronward_runs AS r
      WHERE r.namespace = asked.namespace AND r.job = asked.job AND r.start_ms = asked.start_ms
        AND r.token = coalesce(asked.token, s.mark_token)
        AND r.attempt = coalesce(asked.attempt, CASE WHEN asked.token IS NULL THEN s.mark_attempt ELSE r.attempt END)
      ORDER BY r.attempt DESC LIMIT 1) AS own,
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
        CAST(? AS SIGNED) AS start_ms, CONVERT(? USING ascii) COLLATE ascii_bin AS token, CAST(? AS SIGNED) AS attempt,
        CAST(? AS SIGNED) AS alone
) AS asked
LEFT JOIN cronward_slots AS s
    ON s.namespace = asked.namespace AND s.job = asked.job AND s.start_ms = asked.start_ms
LEFT JOIN cronward_pauses AS p ON p.namespace = asked.namespace AND p.job = asked.job
