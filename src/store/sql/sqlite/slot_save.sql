-- Writes a slot's row. Its transaction holds the write lock since before the row was read, so nothing is overwritten.
INSERT INTO slots (
    namespace, job, start_ms, end_ms, counter, forgiven,
    mark, mark_token, mark_node, mark_attempt, mark_since_ms, mark_until_ms, verdict, touched_ms
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
ON CONFLICT (namespace, job, start_ms) DO UPDATE SET
    end_ms        = excluded.end_ms,
    counter       = excluded.counter,
    forgiven      = excluded.forgiven,
    mark          = excluded.mark,
    mark_token    = excluded.mark_token,
    mark_node     = excluded.mark_node,
    mark_attempt  = excluded.mark_attempt,
    mark_since_ms = excluded.mark_since_ms,
    mark_until_ms = excluded.mark_until_ms,
    verdict       = excluded.verdict,
    touched_ms    = excluded.touched_ms
