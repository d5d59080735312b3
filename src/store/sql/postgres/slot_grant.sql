-- Follows `loaded`, which is slot_load.sql: grants a slot of which there is no row yet, if it has begun and is not over, its job
-- is not paused, and, where it has to run alone ($4), no other slot of the job is leased and the job's next turn is not taken
-- meanwhile. Whatever else it is, nothing is written, and a rule judges what was read. $5 to $15 are the slot's row and $16 to $18 the run, as they would be had it been granted at its start ($3): the
-- instants of the grant become the server's clock. No instant is later than the last that there is.
fresh AS (
    INSERT INTO cronward_slots (
        namespace, job, start_ms, end_ms, counter, forgiven,
        mark, mark_token, mark_node, mark_attempt, mark_since_ms, mark_until_ms, verdict, touched_ms, version, turn
    )
    SELECT
        $1, $2, $3, $5, $6, $7,
        $8, $9, $10, $11, now_ms, least($13 + now_ms - $12, 8210266876799999), $14, $15, now_ms,
        CASE WHEN $4 <> 0 THEN coalesce(turn, 0) + 1 END
    FROM loaded
    WHERE version IS NULL AND now_ms >= $3 AND now_ms < $5
        AND NOT (since_ms IS NOT NULL AND coalesce(until_ms > now_ms, true))
        AND other IS NULL
    ON CONFLICT DO NOTHING
    RETURNING version AS granted
), ran AS (
    INSERT INTO cronward_runs (namespace, job, start_ms, attempt, token, record)
    SELECT $1, $2, $3, $16, $17, replace($18, '"claimed_ms":' || $12, '"claimed_ms":' || granted) FROM fresh
)
SELECT loaded.*, fresh.granted FROM loaded LEFT JOIN fresh ON true
