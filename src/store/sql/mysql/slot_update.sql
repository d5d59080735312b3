-- Writes the row of a slot if it still has the version that was read, unless that was too long ago, as in slot_insert.sql.
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
    version       = ?
WHERE namespace = ? AND job = ? AND start_ms = ? AND version = ?
    AND timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(3)) DIV 1000 - ? <= ?
