//! What is recorded of one slot besides its mark. Data and its small rules; nothing here knows of time-outs or marks.

use chrono::{DateTime, Utc};

use crate::slot::{Attempt, Audit, Holder, Lease, Outcome, RunRecord, Token, Verdict, VerdictRecord};

/// Counter, runs, verdict and operators' verbs of one slot.
#[derive(Clone, Debug)]
pub(super) struct Log {
    /// The attempt counter. Rises with each grant; never falls (I2).
    pub(super) counter: u32,
    /// Attempts that do not count: given back, or forgiven by a reset.
    pub(super) forgiven: u32,
    pub(super) verdict: Option<VerdictRecord>,
    /// By attempt. A number that was granted twice, before and after the store lost its data, has a record for each token.
    pub(super) runs: Vec<RunRecord>,
    pub(super) audit: Vec<Audit>,
    pub(super) changed: DateTime<Utc>,
}

/// What is known of a slot that nobody touched.
pub(super) static UNTOUCHED: Log = Log::new();

impl Default for Log {
    fn default() -> Self {
        Self::new()
    }
}

impl Log {
    const fn new() -> Self {
        Self {
            counter: 0,
            forgiven: 0,
            verdict: None,
            runs: Vec::new(),
            audit: Vec::new(),
            changed: DateTime::<Utc>::MIN_UTC,
        }
    }

    /// The largest attempt that is known of: a counter that was lost while the runs were kept does not start again.
    pub(super) fn known(&self) -> Attempt {
        self.runs.iter().map(|run| run.attempt).fold(self.counter, Attempt::max)
    }

    /// Attempts that count against `max_attempts`.
    pub(super) fn used(&self) -> u32 {
        self.known().saturating_sub(self.forgiven)
    }

    /// The counter becomes at least this attempt.
    pub(super) fn raise(&mut self, attempt: Attempt) {
        self.counter = self.counter.max(attempt);
    }

    pub(super) fn run(&self, attempt: Attempt, token: Token) -> Option<&RunRecord> {
        self.runs.iter().find(|run| run.attempt == attempt && run.token == token)
    }

    /// Whether this lease's run has a recorded end.
    pub(super) fn has_ended(&self, lease: &Lease) -> bool {
        self.run(lease.attempt, lease.token).is_some_and(|run| run.outcome.is_some())
    }

    /// Whether a run under this token has a recorded end.
    pub(super) fn is_spent(&self, token: Token) -> bool {
        self.runs.iter().any(|run| run.token == token && run.outcome.is_some())
    }

    /// The newest attempt, if it counts, is this token's, and its run has no recorded end: its claim's answer may have been
    /// lost, and nobody has followed it. A reset forgives it, and it is then no longer that claim's to go on with.
    pub(super) fn unanswered(&self, token: Token) -> Option<&RunRecord> {
        let run = self.run(self.known(), token)?;
        let alone = self.follower(run.attempt, token, run.claimed_at).is_none();
        (alone && !self.is_spent(token) && self.used() > 0).then_some(run)
    }

    /// Whether another claim was granted after this lease's, or in its place.
    pub(super) fn has_newer(&self, lease: &Lease) -> bool {
        self.known() > lease.attempt || self.overtaker(lease).is_some()
    }

    /// The newest other claim that was granted after this lease's, or in its place: it held the slot meanwhile, also if it is
    /// over by now.
    pub(super) fn overtaker(&self, lease: &Lease) -> Option<Holder> {
        let newest = self.follower(lease.attempt, lease.token, lease.claimed_at)?;
        Some(Holder { node: newest.node.clone(), attempt: newest.attempt })
    }

    /// Who followed a claim: by its number; or by when it was granted, where numbers began anew because the store had lost its
    /// data. A run without a guard is in nobody's place, and nobody is in its.
    fn follower(&self, attempt: Attempt, token: Token, claimed_at: DateTime<Utc>) -> Option<&RunRecord> {
        let others = || self.runs.iter().filter(|run| run.token != token && run.attempt > 0 && attempt > 0);
        let above = others().filter(|run| run.attempt >= attempt).max_by_key(|run| run.attempt);
        let later =
            || others().filter(|run| run.claimed_at > claimed_at).max_by_key(|run| (run.claimed_at, run.attempt));
        above.or_else(later)
    }

    /// Writes a run's record. An end is never overwritten by the lack of one, nor success by anything else (I7).
    pub(super) fn write(&mut self, run: RunRecord) {
        let same = |old: &RunRecord| old.attempt == run.attempt && old.token == run.token;
        match self.runs.iter_mut().find(|old| same(old)) {
            Some(old) if may_replace(old.outcome, run.outcome) => *old = run,
            Some(_) => {}
            None => {
                self.runs.push(run);
                self.runs.sort_by_key(|run| (run.attempt, run.claimed_at, run.token));
            }
        }
    }

    /// The run of this claim ended in this way, unless it is known how.
    pub(super) fn end(&mut self, attempt: Attempt, token: Token, outcome: Outcome) {
        let run = self.runs.iter_mut().find(|run| run.attempt == attempt && run.token == token);
        if let Some(run) = run {
            run.outcome = run.outcome.or(Some(outcome));
        }
    }

    /// Records the verdict `done` over whatever was recorded; the first to record `done` stays.
    pub(super) fn done(&mut self, by: &Holder, at: DateTime<Utc>) {
        if !self.verdict.as_ref().is_some_and(|record| record.verdict == Verdict::Done) {
            let Holder { node, attempt } = by.clone();
            self.verdict = Some(VerdictRecord { verdict: Verdict::Done, by: node, at, attempt });
        }
    }
}

fn may_replace(old: Option<Outcome>, new: Option<Outcome>) -> bool {
    match (old, new) {
        (Some(Outcome::Success), new) => new == Some(Outcome::Success),
        (Some(_), None) => false,
        (Some(_) | None, _) => true,
    }
}
