//! How PostgreSQL's tables show a grant.

/// A slot's row and its run, without what differs between two grants.
pub(crate) const GRANTED: &str =
    "SELECT concat_ws(' ', s.end_ms, s.counter, s.forgiven, s.mark, s.mark_node, s.mark_attempt,
        s.mark_until_ms - s.mark_since_ms, s.mark_since_ms <= s.version, coalesce(s.verdict, 'none'), s.touched_ms,
        r.attempt, r.token = s.mark_token, (r.record::json ->> 'claimed_ms')::bigint = s.mark_since_ms,
        replace(r.record, s.mark_since_ms::text, 'then'))
    FROM cronward_slots AS s JOIN cronward_runs AS r USING (namespace, job, start_ms) WHERE job = 'NAME'";
