-- The whole record of one run: in its slot's row, or among the others.
SELECT coalesce(
    (SELECT s.run_record COLLATE utf8mb4_bin FROM cronward_slots AS s
      WHERE s.namespace = asked.namespace AND s.job = asked.job AND s.start_ms = asked.start_ms
        AND s.run_attempt = asked.attempt AND s.run_token = asked.token),
    (SELECT t.record FROM cronward_runs AS t
      WHERE t.namespace = asked.namespace AND t.job = asked.job AND t.start_ms = asked.start_ms
        AND t.attempt = asked.attempt AND t.token = asked.token)
) AS record
FROM (
    SELECT
        CONVERT(? USING ascii) COLLATE ascii_bin AS namespace, CONVERT(? USING ascii) COLLATE ascii_bin AS job,
        CAST(? AS SIGNED) AS start_ms, CAST(? AS SIGNED) AS attempt, CONVERT(? USING ascii) COLLATE ascii_bin AS token
) AS asked
