-- The pages of many slots without what is in them; ?2 as in slots_read.sql.
SELECT n.job, n.start_ms, n.page, n.last_ms
FROM json_each(?2) AS asked
CROSS JOIN notes AS n
    ON n.namespace = ?1 AND n.job = asked.value ->> 0 AND n.start_ms = asked.value ->> 1
