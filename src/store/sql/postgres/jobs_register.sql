-- Makes the registry know jobs; first_seen_ms of a known name is kept. $3 is a JSON array of [name, entry].
INSERT INTO cronward_jobs AS known (namespace, name, first_seen_ms, entry)
SELECT $1, job ->> 0, $2, job ->> 1 FROM json_array_elements($3::text::json) AS asked (job)
ON CONFLICT (namespace, name) DO UPDATE SET entry = excluded.entry WHERE known.entry <> excluded.entry
