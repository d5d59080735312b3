-- The audit of many slots, oldest first; $2 as in slots_read.sql.
SELECT a.job, a.start_ms, a.record
FROM json_array_elements($2::text::json) AS asked (slot)
JOIN cronward_audit AS a
    ON a.namespace = $1 AND a.job = slot ->> 0 AND a.start_ms = (slot ->> 1)::bigint
ORDER BY a.id
