-- Removes at most $4 slots whose records were last changed at or before $2, except where a mark still stands at $3. One that
-- somebody changes now is left alone.
DELETE FROM cronward_slots
WHERE (namespace, job, start_ms) IN (
    SELECT namespace, job, start_ms FROM cronward_slots
    WHERE namespace = $1 AND touched_ms <= $2 AND (mark_until_ms IS NULL OR mark_until_ms <= $3)
    ORDER BY touched_ms
    LIMIT $4
    FOR UPDATE SKIP LOCKED
)
