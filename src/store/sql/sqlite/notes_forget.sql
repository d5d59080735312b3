-- Removes one page.
DELETE FROM notes WHERE namespace = ?1 AND job = ?2 AND start_ms = ?3 AND page = ?4
