//! That the node cannot use its store, though the store answers those who look: a full store reads and does not write. The node says when
//! it loses its store and when it has it again. Until its next heartbeat it does not know better, unless the store itself said so. Pure;
//! decides nothing but when that may be said.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::Mono;
use crate::store::HEARTBEAT;

/// A store that answers again has been tried by the node within this: a heartbeat, and its time to fail.
const TRIED: Duration = HEARTBEAT.saturating_add(Duration::from_secs(2));

/// What the node said as it lost its store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoreLoss {
    /// When, by the node's two clocks.
    pub(super) at: Mono,
    pub(super) since: DateTime<Utc>,
    /// In one line, without secrets.
    pub(super) error: String,
    /// The store itself said so.
    pub(super) answered: bool,
}

impl StoreLoss {
    /// From when on it is known that the node cannot use a store that answers. `failed`: when a look at the store failed last.
    pub(super) fn known_at(&self, failed: Option<Mono>) -> Mono {
        match failed.filter(|failed| *failed > self.at) {
            Some(failed) => failed + TRIED,
            None if self.answered => self.at,
            None => self.at + TRIED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_has_the_time_for_a_heartbeat_after_the_store_was_lost_and_after_it_came_back() {
        let at = |seconds: u64| Mono::from_nanos(seconds * 1_000_000_000);
        let loss =
            |answered| StoreLoss { at: at(100), since: DateTime::UNIX_EPOCH, error: "full".to_owned(), answered };
        let known = |answered| [None, Some(at(90)), Some(at(130))].map(|failed| loss(answered).known_at(failed));
        assert_eq!(known(false), [at(112), at(112), at(142)]);
        assert_eq!(known(true), [at(100), at(100), at(142)], "what the store says itself needs no second word");
    }
}
