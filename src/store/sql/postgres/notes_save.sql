-- Keeps pages; each takes the place of its earlier form. $2 is a JSON array of [job, start, page, last, kept from, record].
INSERT INTO cronward_notes (namespace, job, start_ms, page, last_ms, kept_from_ms, record)
SELECT $1, n ->> 0, (n ->> 1)::bigint, n ->> 2, (n ->> 3)::bigint, (n ->> 4)::bigint, n ->> 5
FROM json_array_elements($2::text::json) AS asked (n)
ON CONFLICT (namespace, job, start_ms, page) DO UPDATE SET
    last_ms = excluded.last_ms, kept_from_ms = excluded.kept_from_ms, record = excluded.record
