-- The runs of many slots without their outputs; $2 as in slots_read.sql. The output is a record's last field, and quotes inside
-- of values are escaped, so what is cut off can only be that field.
SELECT r.job, r.start_ms,
    CASE strpos(r.record, ',"output":{')
        WHEN 0 THEN r.record
        ELSE left(r.record, strpos(r.record, ',"output":{') - 1) || '}'
    END AS record
FROM json_array_elements($2::text::json) AS asked (slot)
JOIN cronward_runs AS r
    ON r.namespace = $1 AND r.job = slot ->> 0 AND r.start_ms = (slot ->> 1)::bigint
