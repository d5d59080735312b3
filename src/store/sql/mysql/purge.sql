-- Removes slots whose records were last changed at or before the first instant, except where a mark still stands at the
-- second; so many at most.
DELETE FROM cronward_slots
WHERE namespace = ? AND touched_ms <= ? AND (mark_until_ms IS NULL OR mark_until_ms <= ?)
ORDER BY touched_ms
LIMIT ?
