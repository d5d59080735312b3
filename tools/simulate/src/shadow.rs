//! The protocol's rules on one slot once more, written from `docs/PROTOCOL.md` and not from the ledger: what a store must
//! answer, and what must stand there afterwards. Two readings of the same page that agree on every step of millions of
//! histories are the best evidence that the page says one thing.
//!
//! A snapshot of a store has its shadows with it, so the rules hold strictly also for a store that lost data: they are
//! judged by what it still knows.

use std::time::Duration;

use chrono::{DateTime, Utc};
use cronward::clock::later;
use cronward::reply::ClaimRequest;
use cronward::slot::{Attempt, Lease, Slot, Token, Verdict};

/// What the store must know of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shadow {
    /// The last lease, also when it has lapsed.
    pub(super) lease: Option<Standing>,
    /// The last wait, also when it is over.
    pub(super) wait: Option<Standing>,
    /// The done marker.
    pub(super) done: Option<Standing>,
    pub(super) known: Attempt,
    pub(super) forgiven: u32,
    pub(super) verdict: Option<Verdict>,
    /// Every attempt that is recorded.
    pub(super) runs: Vec<Recorded>,
    /// When the last lease was released.
    pub(super) freed: DateTime<Utc>,
    /// The attempt whose failure was reported last.
    pub(super) failed: Option<Token>,
}

/// A run as it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) attempt: Attempt,
    pub(super) token: Token,
    pub(super) claimed_at: DateTime<Utc>,
    /// Its end is recorded.
    pub(super) ended: bool,
    /// And it was success.
    pub(super) succeeded: bool,
}

impl Recorded {
    const fn begun(lease: &Lease) -> Self {
        Self {
            attempt: lease.attempt,
            token: lease.token,
            claimed_at: lease.claimed_at,
            ended: false,
            succeeded: false,
        }
    }

    fn is_of(&self, attempt: Attempt, token: Token) -> bool {
        (self.attempt, self.token) == (attempt, token)
    }
}

/// Something that stands until a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) attempt: Attempt,
    pub(super) token: Token,
    pub(super) until: DateTime<Utc>,
}

impl Default for Shadow {
    fn default() -> Self {
        Self {
            lease: None,
            wait: None,
            done: None,
            known: 0,
            forgiven: 0,
            verdict: None,
            runs: Vec::new(),
            freed: DateTime::<Utc>::MIN_UTC,
            failed: None,
        }
    }
}

impl Shadow {
    pub(super) fn lease_at(&self, now: DateTime<Utc>) -> Option<Standing> {
        self.lease.filter(|lease| lease.until > now)
    }

    pub(super) fn wait_at(&self, now: DateTime<Utc>) -> Option<Standing> {
        self.wait.filter(|wait| wait.until > now)
    }

    pub(super) fn done_at(&self, now: DateTime<Utc>) -> Option<Standing> {
        self.done.filter(|done| done.until > now)
    }

    pub(super) fn used(&self) -> u32 {
        self.known.saturating_sub(self.forgiven)
    }

    pub(super) fn has_ended(&self, attempt: Attempt, token: Token) -> bool {
        self.runs.iter().any(|run| run.is_of(attempt, token) && run.ended)
    }

    /// Whether this token was granted and its run's end is recorded: nobody waits for it any more.
    pub(super) fn is_spent(&self, token: Token) -> bool {
        self.runs.iter().any(|run| run.token == token && run.ended)
    }

    /// What a claim must be answered; see `cronward::store::Claim::as_str`. `blocked`: it is exclusive, and another slot of its job is leased.
    pub(super) fn claim(&self, request: &ClaimRequest, now: DateTime<Utc>, blocked: bool) -> &'static str {
        let slot = &request.slot;
        if self.done_at(now).is_some() || self.verdict == Some(Verdict::Done) {
            return "done";
        }
        let lease = self.lease_at(now);
        if lease.is_some_and(|lease| lease.token == request.token) {
            return "claimed";
        }
        let over = now >= slot.end() && !request.past;
        if self.found_again(request.token, now).is_none() {
            if now < slot.start() {
                return "early";
            }
            if over {
                return "closed";
            }
            if lease.is_some() {
                return "held";
            }
            if self.used() >= request.max_attempts || self.known >= 999 {
                return "exhausted";
            }
            if self.is_spent(request.token) || self.wait_at(now).is_some() {
                return "backoff";
            }
        }
        match blocked {
            false => "claimed",
            true if over => "closed",
            true => "blocked",
        }
    }

    /// The attempt that this token was granted and that nobody has followed: its lease lapsed before its sender heard of it.
    pub(super) fn found_again(&self, token: Token, now: DateTime<Utc>) -> Option<Attempt> {
        let nothing = self.lease_at(now).is_none() && self.wait_at(now).is_none() && self.done_at(now).is_none();
        let newest = self.runs.iter().find(|run| run.is_of(self.known, token))?;
        let alone = !self.is_followed(newest.attempt, token, newest.claimed_at);
        (nothing && alone && !self.is_spent(token) && self.used() > 0).then_some(newest.attempt)
    }

    /// A claim was answered with a grant: whether it was a new one.
    pub(super) fn granted(&mut self, request: &ClaimRequest, attempt: Attempt, now: DateTime<Utc>) -> bool {
        let until = later(now, request.lease_ttl);
        if let Some(lease) = self.lease.as_mut().filter(|lease| lease.until > now && lease.token == request.token) {
            lease.until = lease.until.max(until);
            return false;
        }
        let again = self.found_again(request.token, now) == Some(attempt);
        self.lease = Some(Standing { attempt, token: request.token, until });
        self.wait = None;
        self.known = self.known.max(attempt);
        if !again {
            self.runs.push(Recorded::begun(&request.granted(attempt, now)));
        }
        !again
    }

    /// Whether its token stands there by another attempt, and somebody else was granted the slot since: a late copy of its claim was
    /// granted.
    fn is_granted_anew(&self, lease: &Lease, now: DateTime<Utc>) -> bool {
        let standing = [self.lease_at(now), self.wait_at(now)].into_iter().flatten().next();
        standing.is_some_and(|standing| standing.token == lease.token && standing.attempt != lease.attempt)
            && self.has_newer(lease)
    }

    /// What a renewal must be answered.
    pub(super) fn renew(&mut self, lease: &Lease, now: DateTime<Utc>) -> &'static str {
        let until = later(now, lease.ttl);
        if self.done_at(now).is_some() {
            return "done";
        }
        let anew = self.is_granted_anew(lease, now);
        match self.lease.as_mut().filter(|standing| standing.until > now) {
            Some(standing) if standing.token == lease.token && !anew => {
                standing.until = standing.until.max(until);
                return "renewed";
            }
            Some(_) => return "lost",
            None => {}
        }
        if self.verdict == Some(Verdict::Done) {
            return "done";
        }
        let newer = self.known > lease.attempt || self.has_newer(lease);
        if self.wait_at(now).is_some() || self.has_ended(lease.attempt, lease.token) || newer {
            return "lost";
        }
        self.lease = Some(Standing { attempt: lease.attempt, token: lease.token, until });
        self.wait = None;
        self.known = self.known.max(lease.attempt);
        // As with an end, the record is what its holder says: a late copy of its claim may have been granted anew since.
        self.runs.retain(|run| !run.is_of(lease.attempt, lease.token));
        self.runs.push(Recorded::begun(lease));
        "restored"
    }

    /// What a completion must be answered.
    pub(super) fn complete(&mut self, lease: &Lease, done_ttl: Duration, now: DateTime<Utc>) -> &'static str {
        self.end(lease, true);
        self.verdict = Some(Verdict::Done);
        let newer = self.has_newer(lease);
        if let Some(done) = self.done_at(now) {
            return if done.token == lease.token && !newer { "recorded" } else { "overtaken" };
        }
        let others = [self.lease_at(now), self.wait_at(now)].into_iter().flatten().any(|it| it.token != lease.token);
        self.done = Some(Standing { attempt: lease.attempt, token: lease.token, until: later(now, done_ttl) });
        (self.lease, self.wait, self.freed) = (None, None, now);
        if others || newer { "overtaken" } else { "recorded" }
    }

    /// Another attempt held the slot after this one or in its place.
    fn has_newer(&self, lease: &Lease) -> bool {
        self.is_followed(lease.attempt, lease.token, lease.claimed_at)
    }

    /// By its number, or by when it was granted.
    fn is_followed(&self, attempt: Attempt, token: Token, claimed_at: DateTime<Utc>) -> bool {
        let other = |run: &&Recorded| run.token != token && run.attempt > 0 && attempt > 0;
        self.runs.iter().filter(other).any(|run| run.attempt >= attempt || run.claimed_at > claimed_at)
    }

    /// What a failure (or an attempt given back, with a wait of none) must be answered.
    pub(super) fn fail(&mut self, lease: &Lease, retry_after: Duration, now: DateTime<Utc>) -> &'static str {
        let held = self.lease_at(now).filter(|standing| standing.token == lease.token);
        let standing = [self.lease_at(now), self.wait_at(now)].into_iter().flatten().next();
        let answer = match (standing, self.done_at(now)) {
            (_, Some(_)) => "overtaken",
            (Some(standing), None) => {
                if standing.token == lease.token && !self.is_granted_anew(lease, now) {
                    "released"
                } else {
                    "overtaken"
                }
            }
            (None, None) if self.has_newer(lease) => "overtaken",
            (None, None) => {
                if self.has_ended(lease.attempt, lease.token) {
                    "released"
                } else {
                    "expired"
                }
            }
        };
        self.end(lease, false);
        if let Some(held) = held {
            self.lease = None;
            self.freed = now;
            self.wait = (!retry_after.is_zero()).then(|| Standing { until: later(now, retry_after), ..held });
            self.failed = Some(lease.token);
        }
        answer
    }

    /// The same for an attempt given back.
    pub(super) fn give_back(&mut self, lease: &Lease, now: DateTime<Utc>) -> &'static str {
        if self.lease_at(now).is_some_and(|standing| standing.token == lease.token) {
            self.forgiven += 1;
        }
        self.fail(lease, Duration::ZERO, now)
    }

    /// What a close must be answered.
    pub(super) fn close(&mut self, slot: &Slot, max_attempts: u32, now: DateTime<Utc>) -> &'static str {
        if now < slot.end() {
            return "open";
        }
        if self.verdict.is_some() {
            return "already";
        }
        if self.lease_at(now).is_some() {
            return "running";
        }
        let verdict = if self.used() >= max_attempts { Verdict::Failed } else { Verdict::Missed };
        self.verdict = Some(if self.done_at(now).is_some() { Verdict::Done } else { verdict });
        "first"
    }

    fn end(&mut self, lease: &Lease, succeeded: bool) {
        let ended = Recorded { ended: true, succeeded, ..Recorded::begun(lease) };
        match self.runs.iter_mut().find(|run| run.is_of(lease.attempt, lease.token)) {
            Some(run) if run.succeeded && !succeeded => {}
            Some(run) => *run = ended,
            None => self.runs.push(ended),
        }
        // The counter goes on from the largest attempt that the store knows of.
        self.known = self.known.max(lease.attempt);
    }

    /// Since when anybody might claim it: nothing stands there, and attempts are left.
    pub(super) fn free_since(&self, now: DateTime<Utc>, max_attempts: u32) -> Option<DateTime<Utc>> {
        let taken = self.lease_at(now).is_some()
            || self.wait_at(now).is_some()
            || self.done.is_some()
            || self.verdict == Some(Verdict::Done);
        if taken || self.used() >= max_attempts {
            return None;
        }
        let ended = [self.lease, self.wait].into_iter().flatten().map(|standing| standing.until).max();
        Some(ended.unwrap_or(self.freed).max(self.freed))
    }
}
