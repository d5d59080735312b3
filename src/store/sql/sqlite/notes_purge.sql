-- Removes at most ?3 pages that were kept from ?2 on or before.
DELETE FROM notes
WHERE (namespace, job, start_ms, page) IN (
    SELECT namespace, job, start_ms, page FROM notes
    WHERE namespace = ?1 AND kept_from_ms <= ?2
    ORDER BY kept_from_ms
    LIMIT ?3
)
