-- One row, as of one instant: the server's clock; a slot's row and what a rule needs of its runs, NULL where there is none;
-- the job's last pause; and where $6 is not 0, the oldest of the job's other slots that is leased, and its last turn. $4 and $5
-- are the token and the attempt of the request's lease. Without an attempt, the token's newest run is its own; without either,
-- the mark's is.
SELECT
    now_ms,
    s.version, s.counter, s.forgiven, s.mark, s.mark_token, s.mark_node, s.mark_attempt, s.mark_since_ms,
    s.mark_until_ms, s.verdict, s.touched_ms,
    (SELECT max(r.attempt) FROM cronward_runs AS r
      WHERE r.namespace = $1 AND r.job = $2 AND r.start_ms = $3) AS newest,
    (SELECT max(r.attempt) FROM cronward_runs AS r
      WHERE r.namespace = $1 AND r.job = $2 AND r.start_ms = $3 AND r.token <> $4) AS newest_other,
    (SELECT r.record::json ->> 'node' FROM cronward_runs AS r
      WHERE r.namespace = $1 AND r.job = $2 AND r.start_ms = $3 AND r.token <> $4
      ORDER BY r.attempt DESC LIMIT 1) AS newest_other_node,
    (SELECT r.record FROM cronward_runs AS r
      WHERE r.namespace = $1 AND r.job = $2 AND r.start_ms = $3 AND r.token <> $4 AND r.attempt > 0
      ORDER BY (r.record::json ->> 'claimed_ms')::bigint DESC, r.attempt DESC LIMIT 1) AS latest_other,
    -- A record is JSON in which quotes inside of values are escaped, so this can only be its own field.
    (SELECT count(*) FROM cronward_runs AS r
      WHERE r.namespace = $1 AND r.job = $2 AND r.start_ms = $3 AND r.token = $4
        AND r.record LIKE '%"outcome":"%') AS spent,
    (SELECT r.record FROM cronward_runs AS r
      WHERE r.namespace = $1 AND r.job = $2 AND r.start_ms = $3
        AND r.token = coalesce($4, s.mark_token)
        AND r.attempt = coalesce($5, CASE WHEN $4 IS NULL THEN s.mark_attempt ELSE r.attempt END)
      ORDER BY r.attempt DESC LIMIT 1) AS own,
    p.since_ms, p.until_ms, p.audit,
    CASE WHEN $6 <> 0 THEN
        (SELECT json_build_object(
                'start_ms', o.start_ms, 'mark', o.mark, 'mark_token', o.mark_token, 'mark_node', o.mark_node,
                'mark_attempt', o.mark_attempt, 'mark_since_ms', o.mark_since_ms, 'mark_until_ms', o.mark_until_ms)::text
           FROM cronward_slots AS o
          WHERE o.namespace = $1 AND o.job = $2 AND o.mark = 'lease' AND o.start_ms <> $3 AND o.mark_until_ms > now_ms
          ORDER BY o.start_ms LIMIT 1)
    END AS other,
    CASE WHEN $6 <> 0 THEN
        (SELECT max(o.turn) FROM cronward_slots AS o WHERE o.namespace = $1 AND o.job = $2)
    END AS turn
FROM (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms) AS clock
LEFT JOIN cronward_slots AS s ON s.namespace = $1 AND s.job = $2 AND s.start_ms = $3
LEFT JOIN cronward_pauses AS p ON p.namespace = $1 AND p.job = $2
