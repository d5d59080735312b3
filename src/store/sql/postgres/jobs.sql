-- Every known job, by name.
SELECT name, first_seen_ms, entry FROM cronward_jobs WHERE namespace = $1 ORDER BY name
