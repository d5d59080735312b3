-- Makes the registry know jobs; first_seen_ms of a known name is kept, and so is an entry of a file where the new one is from
-- elsewhere: only such a one says where it is from, and quotes inside of values are escaped. ?3 is a JSON array of [name,
-- entry]. WHERE TRUE tells the parser that ON begins no join.
INSERT INTO jobs (namespace, name, first_seen_ms, entry)
SELECT ?1, asked.value ->> 0, ?2, asked.value ->> 1 FROM json_each(?3) AS asked
WHERE TRUE
ON CONFLICT (namespace, name) DO UPDATE SET entry = excluded.entry WHERE entry <> excluded.entry
  AND (instr(excluded.entry, '"origin":"') = 0 OR instr(entry, '"origin":"') > 0)
