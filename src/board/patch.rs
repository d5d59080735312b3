//! What changed, as whoever looks is told: written down once, however many look.

use std::sync::Arc;

/// One change. Those of one process are numbered from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Which.
    pub number: u64,
    /// What kind: `rows` (jobs whose row changed, with the cells that changed), `cells` (older hours that were read), `hours` (another hour
    /// began: the columns moved), `jobs` (jobs came or went), `nodes`, `store`, `concerns`.
    pub event: &'static str,
    /// What, in JSON on one line (docs/json.md).
    pub data: Arc<str>,
}
