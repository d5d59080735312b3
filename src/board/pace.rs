//! How often the board asks the store. Pure.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::Mono;

/// Between two looks at what may have changed.
pub(super) const ROUND: Duration = Duration::from_secs(10);
/// The same where the store does not tell what changes, and while it is away.
pub(super) const SHORT_ROUND: Duration = Duration::from_secs(5);
/// Between two looks at everything, also at what has its verdict.
pub(super) const LONG_ROUND: Duration = Duration::from_secs(60);
/// So long after the last look the board is forgotten.
pub(super) const KEPT: Duration = Duration::from_secs(60);
/// What happens within this is looked at in one.
pub(super) const TOGETHER: Duration = Duration::from_millis(250);
/// After each call.
pub(super) const PAUSE: Duration = Duration::from_millis(20);
/// So many events at slots of this node within a pause: it is its full hour.
const BUSY: u64 = 20;
/// How long the node goes first then, at the most. One that is always busy keeps nobody from looking.
const GIVES_WAY: Duration = Duration::from_secs(1);

/// So long before a full second no call is begun: whatever is due then is due at the second, and a call that is under way, with what is
/// made of its answer, would hold up the claims.
const AHEAD: Duration = Duration::from_millis(60);

/// How long a call waits that would begin now; none where it need not.
pub(super) fn wait_for_ticks(wall: DateTime<Utc>) -> Option<Duration> {
    let into = Duration::from_nanos(u64::from(wall.timestamp_subsec_nanos()) % 1_000_000_000);
    let left = Duration::from_secs(1).saturating_sub(into);
    (left <= AHEAD).then_some(left + PAUSE)
}

/// Lets the node go first while it has many slots to claim: who looks can wait, and jobs are not to.
#[derive(Debug, Default)]
pub(super) struct Pace {
    busy_since: Option<Mono>,
}

impl Pace {
    /// Whether another pause follows one in which there were so many events at slots of this node.
    pub(super) fn gives_way(&mut self, events: u64, now: Mono) -> bool {
        if events < BUSY {
            self.busy_since = None;
            return false;
        }
        now.since(*self.busy_since.get_or_insert(now)) < GIVES_WAY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_is_begun_shortly_before_a_full_second() {
        let wait = |at: &str| wait_for_ticks(format!("2026-11-21T12:59:{at}Z").parse().unwrap());
        assert_eq!([wait("59.000"), wait("59.500"), wait("59.939")], [None; 3]);
        assert_eq!(wait("59.940"), Some(AHEAD + PAUSE));
        assert_eq!(wait("59.999"), Some(Duration::from_millis(1) + PAUSE));
    }
}
