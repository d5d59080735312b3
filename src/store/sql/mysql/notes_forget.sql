-- Removes one page.
DELETE FROM cronward_notes WHERE namespace = ? AND job = ? AND start_ms = ? AND page = ?
