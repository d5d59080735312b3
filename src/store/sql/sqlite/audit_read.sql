-- The audit of many slots, oldest first; ?2 as in slots_read.sql.
SELECT a.job, a.start_ms, a.record
FROM json_each(?2) AS asked
CROSS JOIN audit AS a
    ON a.namespace = ?1 AND a.job = asked.value ->> 0 AND a.start_ms = asked.value ->> 1
ORDER BY a.id
