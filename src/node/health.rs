//! How a node is, for whoever watches over it: systemd's watchdog, a health check.

use chrono::{DateTime, Utc};

/// A node's health.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Beats of the planner since the start. One that stays the same for seconds means that nothing is planned.
    pub beats: u64,
    /// Whether the last heartbeat reached the store.
    pub store_up: bool,
    /// When the store was last reached, by the node's clock; none until then.
    pub store_seen: Option<DateTime<Utc>>,
    /// The node's clock minus the store's, in milliseconds.
    pub clock_offset_ms: i64,
    /// Slots that this node runs now.
    pub running: usize,
    /// True from the shutdown on.
    pub draining: bool,
}
