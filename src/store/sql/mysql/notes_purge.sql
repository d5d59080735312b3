-- Removes pages that were kept from the instant on or before; so many at most.
DELETE FROM cronward_notes WHERE namespace = ? AND kept_from_ms <= ? ORDER BY kept_from_ms LIMIT ?
