-- Removes at most $4 slots whose records were last changed at or before $2, except where a mark still stands at $3. One that
-- somebody changes now is left alone, and so is the one with the last turn of a job that is known: the next turn follows it.
DELETE FROM cronward_slots
WHERE (namespace, job, start_ms) IN (
    SELECT namespace, job, start_ms FROM cronward_slots AS s
    WHERE namespace = $1 AND touched_ms <= $2 AND (mark_until_ms IS NULL OR mark_until_ms <= $3)
        AND NOT (
            EXISTS (SELECT FROM cronward_jobs AS j WHERE j.namespace = s.namespace AND j.name = s.job)
            AND s.turn = (SELECT max(t.turn) FROM cronward_slots AS t WHERE t.namespace = s.namespace AND t.job = s.job)
        )
    ORDER BY touched_ms
    LIMIT $4
    FOR UPDATE SKIP LOCKED
)
