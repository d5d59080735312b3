-- One row: a slot's row and its runs' records without their outputs, NULL where there is none; the job's last pause; and where ?4
-- is not 0, the oldest of the job's other slots that is leased. An output is a record's last field, and quotes inside of values
-- are escaped, so what is cut off can only be that field.
SELECT
    s.counter, s.forgiven, s.mark, s.mark_token, s.mark_node, s.mark_attempt, s.mark_since_ms, s.mark_until_ms,
    s.verdict, s.touched_ms,
    (SELECT json_group_array(
            CASE instr(r.record, ',"output":{')
                WHEN 0 THEN r.record
                ELSE substr(r.record, 1, instr(r.record, ',"output":{') - 1) || '}'
            END)
       FROM runs AS r
      WHERE r.namespace = ?1 AND r.job = ?2 AND r.start_ms = ?3) AS runs,
    p.since_ms, p.until_ms, p.audit,
    CASE WHEN ?4 THEN
        (SELECT json_object(
                'start_ms', o.start_ms, 'mark', o.mark, 'mark_token', o.mark_token, 'mark_node', o.mark_node,
                'mark_attempt', o.mark_attempt, 'mark_since_ms', o.mark_since_ms, 'mark_until_ms', o.mark_until_ms)
           FROM slots AS o
          WHERE o.namespace = ?1 AND o.job = ?2 AND o.mark = 'lease' AND o.start_ms <> ?3
            AND o.mark_until_ms > CAST(round(unixepoch('subsec') * 1000) AS INTEGER)
          ORDER BY o.start_ms LIMIT 1)
    END AS other
FROM (SELECT 1) AS always
LEFT JOIN slots AS s ON s.namespace = ?1 AND s.job = ?2 AND s.start_ms = ?3
LEFT JOIN pauses AS p ON p.namespace = ?1 AND p.job = ?2
