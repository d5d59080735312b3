-- Writes the row of a slot that had none, with its run and the job's turn that it takes, unless that was read too long ago: the last two values are when, and
-- how many milliseconds ago it may be. Fails when there is one
-- by now, or the turn is taken.
INSERT INTO cronward_slots (
    namespace, job, start_ms, end_ms, counter, forgiven,
    mark, mark_token, mark_node, mark_attempt, mark_since_ms, mark_until_ms, verdict, touched_ms, version,
    run_attempt, run_token, run_record, turn
)
SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM dual
WHERE timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(3)) DIV 1000 - ? <= ?
