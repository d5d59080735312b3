-- A slot's pages, unless they were last changed at or before $4.
SELECT record FROM cronward_notes WHERE namespace = $1 AND job = $2 AND start_ms = $3 AND kept_from_ms > $4
