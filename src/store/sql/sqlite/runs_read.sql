-- The runs of many slots; ?2 as in slots_read.sql.
SELECT r.job, r.start_ms, r.record
FROM json_each(?2) AS asked
CROSS JOIN runs AS r
    ON r.namespace = ?1 AND r.job = asked.value ->> 0 AND r.start_ms = asked.value ->> 1
