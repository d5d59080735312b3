-- Writes the row of a slot if it still has the version that was read, unless that was too long ago, as in slot_insert.sql. The
-- run in it is replaced where the value before it says so. Fails when the job's turn that it takes is taken by another slot.
UPDATE cronward_slots SET
    end_ms        = ?,
    counter       = ?,
    forgiven      = ?,
    mark          = ?,
    mark_token    = ?,
    mark_node     = ?,
    mark_attempt  = ?,
    mark_since_ms = ?,
    mark_until_ms = ?,
    verdict       = ?,
    touched_ms    = ?,
    version       = ?,
    run_attempt   = if(?, ?, run_attempt),
    run_token     = if(?, ?, run_token),
    run_record    = if(?, ?, run_record),
    turn          = coalesce(?, turn)
WHERE namespace = ? AND job = ? AND start_ms = ? AND version = ?
    AND timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(3)) DIV 1000 - ? <= ?
