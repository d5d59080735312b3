-- Keeps pages; each takes the place of its earlier form. ?2 is a JSON array of [job, start, page, last, kept from, record].
-- WHERE TRUE tells the parser that ON begins no join.
INSERT INTO notes (namespace, job, start_ms, page, last_ms, kept_from_ms, record)
SELECT ?1, n.value ->> 0, n.value ->> 1, n.value ->> 2, n.value ->> 3, n.value ->> 4, n.value ->> 5
FROM json_each(?2) AS n
WHERE TRUE
ON CONFLICT (namespace, job, start_ms, page) DO UPDATE SET
    last_ms = excluded.last_ms, kept_from_ms = excluded.kept_from_ms, record = excluded.record
