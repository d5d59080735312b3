//! How long a node may believe that it holds a lease.

use std::time::Duration;

use crate::clock::Mono;
use crate::slot::LeaseDeadline;

/// A span of the node's own clock during which no other node can hold the lease.
///
/// It ends at the instant *before* the granting request was sent, plus the TTL, less a margin: the store began to count
/// the TTL at some moment after that instant, so by the store's clock the lease is still there. The margin covers clocks
/// that run at slightly different rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrustWindow {
    sent: Mono,
    deadline: Mono,
    ttl: Duration,
}

/// The margin is a twentieth of the TTL within these bounds: far more than two quartz clocks differ by in one TTL, and
/// never so much that a short TTL has no window.
const MARGIN: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));

impl TrustWindow {
    /// The window of a grant or renewal that was asked for at `sent`.
    pub fn granted(sent: Mono, ttl: Duration) -> Self {
        let margin = (ttl / 20).clamp(MARGIN.0, MARGIN.1);
        Self { sent, deadline: sent + ttl.saturating_sub(margin), ttl }
    }

    /// Whether the lease can still be believed in.
    pub fn holds(self, now: Mono) -> bool {
        now < self.deadline
    }

    /// What is left of it.
    pub const fn remaining(self, now: Mono) -> Duration {
        self.deadline.since(now)
    }

    /// When it ends.
    pub const fn deadline(self) -> Mono {
        self.deadline
    }

    /// When to renew: a third of the TTL after the last request, so that two may fail.
    pub fn renew_at(self) -> Mono {
        self.sent + self.ttl / 3
    }

    /// When to begin to stop a command that must be dead at the deadline: `kill_after` before it, but not before half of
    /// the TTL is gone, since until then a renewal may still come through.
    pub fn stop_at(self, kill_after: Duration) -> Mono {
        self.deadline.minus(kill_after).max(self.sent + self.ttl / 2)
    }

    /// The same for whoever keeps the command.
    pub fn command_deadline(self, kill_after: Duration) -> LeaseDeadline {
        let kill_at = self.deadline;
        LeaseDeadline { stop_at: self.stop_at(kill_after).min(kill_at), kill_at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(60);

    fn at(seconds: u64) -> Mono {
        Mono::from_origin(Duration::from_secs(seconds))
    }

    #[test]
    fn trust_counts_from_before_the_request_was_sent_and_ends_before_the_ttl() {
        let window = TrustWindow::granted(at(100), TTL);
        assert!(window.holds(at(157)));
        assert!(!window.holds(at(158)));
        assert_eq!(window.remaining(at(150)), Duration::from_secs(8));
    }

    #[test]
    fn two_renewals_may_fail_before_trust_ends() {
        let window = TrustWindow::granted(at(0), TTL);
        assert_eq!(window.renew_at(), at(20));
        assert!(window.renew_at() + TTL / 3 < window.deadline());
    }

    #[test]
    fn a_command_that_must_die_is_stopped_kill_after_before_the_deadline() {
        let window = TrustWindow::granted(at(0), TTL);
        assert_eq!(window.stop_at(Duration::from_secs(10)), at(48));
        assert_eq!(window.stop_at(Duration::from_secs(3_600)), at(30));
    }

    #[test]
    fn a_very_short_ttl_still_has_a_window() {
        let window = TrustWindow::granted(at(0), Duration::from_millis(100));
        assert!(window.holds(at(0)));
    }
}
