//! What truly became of each request for locks: which attempt made it, what its node has heard of it, what the store did with it, and since
//! when nobody needs it. Written down as it happens; judged by `locks` and `lock_laws`.

use std::time::Duration;

use cronward::clock::Mono;
use cronward::event::LeaveAnswer;
use cronward::resource::{Acquired, Demands, LockRelease, LockRenewal};
use cronward::slot::{Attempt, Fence};

use crate::engine::Time;
use crate::message::{Answer, Process};

/// One request.
#[derive(Clone, Debug)]
pub(super) struct LockNeed {
    pub(super) by: Process,
    pub(super) attempt: Attempt,
    pub(super) demands: Demands,
    ttl: Duration,
    /// By the clock of its node: until then it may believe that it holds.
    trusted_until: Option<Mono>,
    /// The number under which it was told that it holds.
    pub(super) fence: Option<Fence>,
    /// It was told to wait.
    pub(super) waited: bool,
    /// It was told that it holds no more.
    pub(super) lost: bool,
    /// What came of its releases.
    pub(super) left: Vec<LeaveAnswer>,
    /// Its node has told that it holds.
    pub(super) is_told: bool,
    /// When the store first let it hold.
    pub(super) held_at: Option<Time>,
    /// When the store last made its entries last.
    pub(super) set_at: Time,
    /// When the store took them out for a node that had had an answer to all that it had asked: it remembers nothing of them.
    pub(super) released_at: Option<Time>,
    /// Since then nobody needs it: its command is over, or will not be started.
    pub(super) over: Option<Time>,
}

/// A twentieth of a TTL, within these bounds, is not trusted.
const MARGIN: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));

impl LockNeed {
    /// One that is about to be asked for.
    pub(super) const fn new(by: Process, attempt: Attempt, demands: Demands, ttl: Duration) -> Self {
        Self {
            by,
            attempt,
            demands,
            ttl,
            trusted_until: None,
            fence: None,
            waited: false,
            lost: false,
            left: Vec::new(),
            is_told: false,
            held_at: None,
            set_at: Time::ZERO,
            released_at: None,
            over: None,
        }
    }

    /// Its node hears an answer to what it had sent at that instant.
    pub(super) fn hear(&mut self, sent: Mono, answer: &Answer) {
        match answer {
            Answer::Acquired(Acquired::Held { fence, .. }) => {
                self.fence = Some(*fence);
                self.trust(sent);
            }
            Answer::Acquired(Acquired::Waiting { .. }) => self.waited = true,
            Answer::LockRenewal(LockRenewal::Renewed | LockRenewal::Restored) => self.trust(sent),
            Answer::LockRenewal(LockRenewal::Lost { .. }) => self.lost = true,
            Answer::LockRelease(answer) => self.left.push(word(answer)),
            _ => {}
        }
    }

    fn trust(&mut self, sent: Mono) {
        let margin = (self.ttl / 20).clamp(MARGIN.0, MARGIN.1);
        self.trusted_until = Some(sent + self.ttl.saturating_sub(margin));
    }

    /// Whether its node may believe that it holds.
    pub(super) fn is_trusted(&self, now: Mono) -> bool {
        !self.lost && self.trusted_until.is_some_and(|until| now < until)
    }
}

const fn word(answer: &LockRelease) -> LeaveAnswer {
    match answer {
        LockRelease::Released => LeaveAnswer::Released,
        LockRelease::Expired => LeaveAnswer::Expired,
        LockRelease::Overtaken { .. } => LeaveAnswer::Overtaken,
    }
}

/// What a node waits at the least that has waited for its locks in vain so many times in a row: a second, doubled up to five minutes.
pub(super) fn after_queue(times: usize) -> Duration {
    let doublings = u32::try_from(times.saturating_sub(1)).unwrap_or(u32::MAX).min(9);
    Duration::from_secs(1 << doublings).min(Duration::from_secs(300))
}
