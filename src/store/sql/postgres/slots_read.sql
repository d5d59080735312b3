-- The rows of many slots. $2 is a JSON array of [job, start_ms].
SELECT
    s.job, s.start_ms, s.counter, s.forgiven, s.mark, s.mark_token, s.mark_node, s.mark_attempt, s.mark_since_ms,
    s.mark_until_ms, s.verdict, s.touched_ms
FROM json_array_elements($2::text::json) AS asked (slot)
JOIN cronward_slots AS s
    ON s.namespace = $1 AND s.job = slot ->> 0 AND s.start_ms = (slot ->> 1)::bigint
