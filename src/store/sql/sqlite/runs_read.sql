-- The runs of many slots without their outputs; ?2 as in slots_read.sql. The output is a record's last field, and quotes inside
-- of values are escaped, so what is cut off can only be that field.
SELECT r.job, r.start_ms,
    CASE instr(r.record, ',"output":{')
        WHEN 0 THEN r.record
        ELSE substr(r.record, 1, instr(r.record, ',"output":{') - 1) || '}'
    END AS record
FROM json_each(?2) AS asked
CROSS JOIN runs AS r
    ON r.namespace = ?1 AND r.job = asked.value ->> 0 AND r.start_ms = asked.value ->> 1
