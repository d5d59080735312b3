-- Keeps pages; each takes the place of its earlier form. Asked are the namespace, and a JSON array of [job, start, page, last,
-- kept from, record]. A column that names no character set has the server's, which may lack most letters. WHERE TRUE tells the
-- parser that ON begins no join.
INSERT INTO cronward_notes (namespace, job, start_ms, page, last_ms, kept_from_ms, record)
SELECT asked.namespace, n.job, n.start_ms, n.page, n.last_ms, n.kept_from_ms, n.record
FROM (SELECT CONVERT(? USING ascii) AS namespace, ? AS pages) AS asked
JOIN json_table(asked.pages, '$[*]' COLUMNS (
    job          VARCHAR(64) PATH '$[0]',
    start_ms     BIGINT PATH '$[1]',
    page         VARCHAR(64) PATH '$[2]',
    last_ms      BIGINT PATH '$[3]',
    kept_from_ms BIGINT PATH '$[4]',
    record       LONGTEXT CHARACTER SET utf8mb4 PATH '$[5]'
)) AS n
WHERE TRUE
ON DUPLICATE KEY UPDATE last_ms = VALUES(last_ms), kept_from_ms = VALUES(kept_from_ms), record = VALUES(record)
