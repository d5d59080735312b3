-- Makes the registry know jobs; first_seen_ms of a known name is kept, and so is an entry of a file where the new one is from
-- elsewhere: only such a one says where it is from, and quotes inside of values are escaped. $3 is a JSON array of [name,
-- entry].
INSERT INTO cronward_jobs AS known (namespace, name, first_seen_ms, entry)
SELECT $1, job ->> 0, $2, job ->> 1 FROM json_array_elements($3::text::json) AS asked (job)
ON CONFLICT (namespace, name) DO UPDATE SET entry = excluded.entry WHERE known.entry <> excluded.entry
  AND (strpos(excluded.entry, '"origin":"') = 0 OR strpos(known.entry, '"origin":"') > 0)
