-- A slot's row and what a rule needs of its runs. ?4 and ?5 are the token and the attempt of the request's lease. Without
-- an attempt, the token's newest is its own; without either, the mark's is.
SELECT
    counter, forgiven, mark, mark_token, mark_node, mark_attempt, mark_since_ms, mark_until_ms, verdict, touched_ms,
    (SELECT max(r.attempt) FROM runs AS r
      WHERE r.namespace = ?1 AND r.job = ?2 AND r.start_ms = ?3) AS newest,
    (SELECT max(r.attempt) FROM runs AS r
      WHERE r.namespace = ?1 AND r.job = ?2 AND r.start_ms = ?3 AND r.token <> ?4) AS newest_other,
    (SELECT json_extract(r.record, '$.node') FROM runs AS r
      WHERE r.namespace = ?1 AND r.job = ?2 AND r.start_ms = ?3 AND r.token <> ?4
      ORDER BY r.attempt DESC LIMIT 1) AS newest_other_node,
    -- A record is JSON in which quotes inside of values are escaped, so this can only be its own field.
    (SELECT count(*) FROM runs AS r
      WHERE r.namespace = ?1 AND r.job = ?2 AND r.start_ms = ?3 AND r.token = ?4
        AND r.record LIKE '%"outcome":"%') AS spent,
    (SELECT r.record FROM runs AS r
      WHERE r.namespace = ?1 AND r.job = ?2 AND r.start_ms = ?3
        AND r.token = coalesce(?4, mark_token)
        AND r.attempt = coalesce(?5, CASE WHEN ?4 IS NULL THEN mark_attempt ELSE r.attempt END)
      ORDER BY r.attempt DESC LIMIT 1) AS own
FROM slots
WHERE namespace = ?1 AND job = ?2 AND start_ms = ?3
