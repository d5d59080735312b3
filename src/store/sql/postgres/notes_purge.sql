-- Removes at most $3 pages that were kept from $2 on or before. One that somebody changes now is left alone.
DELETE FROM cronward_notes
WHERE (namespace, job, start_ms, page) IN (
    SELECT namespace, job, start_ms, page FROM cronward_notes
    WHERE namespace = $1 AND kept_from_ms <= $2
    ORDER BY kept_from_ms
    LIMIT $3
    FOR UPDATE SKIP LOCKED
)
