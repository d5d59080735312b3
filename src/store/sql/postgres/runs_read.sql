-- The runs of many slots; $2 as in slots_read.sql.
SELECT r.job, r.start_ms, r.record
FROM json_array_elements($2::text::json) AS asked (slot)
JOIN cronward_runs AS r
    ON r.namespace = $1 AND r.job = slot ->> 0 AND r.start_ms = (slot ->> 1)::bigint
