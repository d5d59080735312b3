-- Writes what a rule has changed, all of it or nothing. $1 to $14 are the slot's row; $15 the version that was read, NULL
-- when there was no row; $16 when it was read, and $17 how long ago that may be; $18 to $20 a run's attempt, token and
-- record; $21 an operator's verb; $22 and $23 the channel and a hint; $24 the job's turn that it takes. Each but the row may be
-- NULL. A new version is larger than any that a row of this slot has had, also one that was purged: it is never below the clock.
-- Fails where the turn of a row that is changed was taken by another slot.
WITH fresh AS (
    INSERT INTO cronward_slots (
        namespace, job, start_ms, end_ms, counter, forgiven,
        mark, mark_token, mark_node, mark_attempt, mark_since_ms, mark_until_ms, verdict, touched_ms, version, turn
    )
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $16, $24
    WHERE $15 IS NULL AND floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - $16 <= $17
    ON CONFLICT DO NOTHING
    RETURNING 1
), changed AS (
    UPDATE cronward_slots SET
        end_ms        = $4,
        counter       = $5,
        forgiven      = $6,
        mark          = $7,
        mark_token    = $8,
        mark_node     = $9,
        mark_attempt  = $10,
        mark_since_ms = $11,
        mark_until_ms = $12,
        verdict       = $13,
        touched_ms    = $14,
        version       = greatest($15 + 1, $16),
        turn          = coalesce($24, turn)
    WHERE namespace = $1 AND job = $2 AND start_ms = $3 AND version = $15
        AND floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - $16 <= $17
    RETURNING 1
), saved AS (
    SELECT 1 FROM fresh UNION ALL SELECT 1 FROM changed
), ran AS (
    INSERT INTO cronward_runs (namespace, job, start_ms, attempt, token, record)
    SELECT $1, $2, $3, $18, $19, $20 FROM saved WHERE $18 IS NOT NULL
    ON CONFLICT (namespace, job, start_ms, attempt, token) DO UPDATE SET record = excluded.record
), noted AS (
    INSERT INTO cronward_audit (namespace, job, start_ms, record)
    SELECT $1, $2, $3, $21 FROM saved WHERE $21 IS NOT NULL
), told AS (
    SELECT pg_notify($22, $23) FROM saved WHERE $23 IS NOT NULL
)
SELECT (SELECT count(*) FROM saved) AS written, (SELECT count(*) FROM told) AS hints
