-- The pages of many slots without what is in them; $2 as in slots_read.sql.
SELECT n.job, n.start_ms, n.page, n.last_ms
FROM json_array_elements($2::text::json) AS asked (slot)
JOIN cronward_notes AS n
    ON n.namespace = $1 AND n.job = slot ->> 0 AND n.start_ms = (slot ->> 1)::bigint
