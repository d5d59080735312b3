-- Removes slots whose records were last changed at or before the first instant, except where a mark still stands at the
-- second; so many at most. The one with the last turn of a job that is known is left: the next turn follows it.
DELETE FROM cronward_slots
WHERE namespace = ? AND touched_ms <= ? AND (mark_until_ms IS NULL OR mark_until_ms <= ?)
    AND NOT (turn IS NOT NULL AND EXISTS (
        SELECT 1 FROM (
            SELECT
                j.namespace, j.name,
                (SELECT t.turn FROM cronward_slots AS t
                  WHERE t.namespace = j.namespace AND t.job = j.name AND t.turn IS NOT NULL
                  ORDER BY t.turn DESC LIMIT 1) AS turn
            FROM cronward_jobs AS j
        ) AS last
        WHERE last.namespace = cronward_slots.namespace AND last.name = cronward_slots.job
            AND last.turn = cronward_slots.turn
    ))
ORDER BY touched_ms
LIMIT ?
