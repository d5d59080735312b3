-- A slot's pages, unless they were last changed at or before the instant.
SELECT record FROM cronward_notes WHERE namespace = ? AND job = ? AND start_ms = ? AND kept_from_ms > ?
