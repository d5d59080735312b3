-- Makes the registry know a job; first_seen_ms of a known name is kept.
INSERT INTO jobs (namespace, name, first_seen_ms, entry)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (namespace, name) DO UPDATE SET entry = excluded.entry WHERE entry <> excluded.entry
