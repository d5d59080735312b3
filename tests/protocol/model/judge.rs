//! The judge: it sees every step, remembers what the invariants speak of, and trusts neither the store's own books nor
//! the nodes'. It never changes the course of things.

use std::hash::{Hash, Hasher};

use cronward::reply::{Claim, Release, Renewal, Settlement};
use cronward::slot::{Mark, RunRecord, Verdict};

use super::setup::{MAX_ATTEMPTS, Setup, Tag, Tick, name};
use super::store::{Kind, Op, Reply, Verb, View};

/// What a step was: a broken invariant, or something that has to be possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Fact {
    TwoLeases,
    AttemptFell,
    DoneTakenBack,
    StaleHolderChanged,
    TooManyGrants,
    TokenGrantedTwice,
    GrantedOutside,
    DoneWithoutSuccess,
    ErrorStarted,
    StartedWithoutLease,
    ToldTwice,
    WrongVerdict,
    SilentOverlap,
    AnswerMixedUp,
    Granted,
    Retry,
    Takeover,
    Exhausted,
    Restored,
    OverlapTold,
    LostReplyFree,
    Refunded,
    TooEarly,
    StartedUnlocked,
    Waited,
    StartedAfterWait,
    GivenBackUnstarted,
    AllHeld,
    OwnInTheWay,
    LateAndRefused,
    LocksLost,
    GrantedPaused,
    StartedPaused,
    PauseHeard,
    Skipped,
    UnlockUndone,
    ResetUndone,
}

/// The facts of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Facts(u64);

impl Facts {
    pub(crate) const fn has(self, fact: Fact) -> bool {
        self.0 & (1 << fact as u64) != 0
    }

    pub(crate) fn note(&mut self, fact: Fact, holds: bool) {
        if holds {
            self.0 |= 1 << fact as u64;
        }
    }
}

/// A claim that was granted, or restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grant {
    tag: Tag,
    attempt: u32,
    /// Until when its lease stands by the store's word; 0 once it was released.
    until: Tick,
    settled: bool,
    /// The store had forgotten it and was told how it ended.
    remembered: bool,
    /// The store was told that it ended well.
    succeeded: bool,
    /// So it was before an operator opened the slot again.
    reopened: bool,
    /// An operator took its lease.
    unlocked: bool,
    /// A success beside it had ended its lease, and an operator has opened the slot since.
    ended: bool,
}

impl Hash for Grant {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let operated = u64::from(self.succeeded) << 5
            | u64::from(self.ended) << 4
            | u64::from(self.reopened) << 3
            | u64::from(self.unlocked) << 2;
        let flags = operated | u64::from(self.settled) << 1 | u64::from(self.remembered);
        let small = u64::from(self.attempt) << 16 | u64::from(self.until) << 8 | flags;
        hasher.write_u64(u64::from(self.tag.bits()) << 32 | small);
    }
}

/// Who operates, as if it were a node.
pub(crate) const OPERATOR: u8 = 7;

/// A pause of so many ticks is as good as one of more.
const LONG: u8 = 8;

impl Grant {
    /// Of one that was granted; or that a store which had forgotten it hears of as it ends.
    const fn new((tag, attempt): (Tag, u32), remembered: bool) -> Self {
        Self {
            tag,
            attempt,
            until: 0,
            settled: remembered,
            remembered,
            succeeded: false,
            reopened: false,
            unlocked: false,
            ended: false,
        }
    }
}

/// What the judge remembers. What a store has forgotten is forgotten here too: the invariants are of a store that keeps
/// what it acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Judge {
    grants: Vec<Grant>,
    refunds: u32,
    /// Attempts up to this one were forgiven by a reset.
    forgiven: u32,
    done_by: Option<Tag>,
    told: bool,
    /// Some command ended well. Not forgotten.
    succeeded: bool,
    /// For how many ticks the job has been paused; none where it is not.
    paused: Option<u8>,
    /// It was at some instant of the slot.
    touched: bool,
}

impl Judge {
    pub(crate) const fn is_done(&self) -> bool {
        self.done_by.is_some()
    }

    /// Attempts that count: a store that has forgotten some learns of them by the number of a later one.
    pub(crate) fn used(&self) -> u32 {
        self.newest().saturating_sub(self.refunds)
    }

    pub(crate) fn succeeded(&mut self) {
        self.succeeded = true;
    }

    /// An operator's verb was applied; who held the lease before.
    pub(crate) fn operated(&mut self, verb: Verb, holder: Option<Tag>) {
        match verb {
            Verb::Unlock => {
                for grant in self.grants.iter_mut().filter(|grant| Some(grant.tag) == holder) {
                    (grant.until, grant.settled, grant.unlocked) = (0, true, true);
                }
            }
            Verb::Reset => {
                self.refunds = self.newest();
                self.forgiven = self.newest();
                let done_by = self.done_by.take();
                for grant in &mut self.grants {
                    grant.reopened |= grant.succeeded;
                    grant.ended |= done_by.is_some() && !grant.settled;
                }
                self.told = false;
            }
            Verb::MarkDone => {
                // The operator says that it was done.
                self.done_by = Some(Tag::of(OPERATOR));
                self.succeeded = true;
            }
        }
    }

    /// The number of the newest attempt that is known.
    pub(crate) fn newest(&self) -> u32 {
        self.grants.iter().map(|grant| grant.attempt).max().unwrap_or(0)
    }

    /// The same of the claim that was granted with this number, and another was granted since.
    pub(crate) fn was_followed(&self, attempt: u32) -> bool {
        let ended = |grant: &Grant| grant.attempt == attempt && (grant.unlocked || grant.ended);
        self.newest() > attempt && self.grants.iter().any(ended)
    }

    fn was_unlocked(&self, tag: Tag, attempt: u32) -> bool {
        self.grants.iter().any(|grant| (grant.tag, grant.attempt) == (tag, attempt) && grant.unlocked)
    }

    /// Whether an operator has ended this claim's lease, by one verb or another.
    pub(crate) fn was_ended(&self, tag: Tag) -> bool {
        self.grants.iter().any(|grant| grant.tag == tag && (grant.unlocked || grant.ended))
    }

    pub(crate) const fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// For how many ticks the job has been paused.
    pub(crate) fn paused_for(&self) -> u8 {
        self.paused.unwrap_or_default()
    }

    pub(crate) const fn paused(&mut self) {
        self.paused = Some(0);
    }

    /// At an instant within the slot, or not.
    pub(crate) const fn resumed(&mut self, within: bool) {
        self.touched |= within;
        self.paused = None;
    }

    /// Time has passed. Of a lease that has lapsed it does not matter since when.
    pub(crate) fn passed(&mut self, now: Tick) {
        for grant in self.grants.iter_mut().filter(|grant| grant.until <= now) {
            grant.until = 0;
        }
        self.touched |= self.is_paused();
        // How long it lasts matters only until it should have been heard.
        self.paused = self.paused.map(|ticks| (ticks + 1).min(LONG));
    }

    pub(crate) fn wiped(&mut self) {
        *self = Self { succeeded: self.succeeded, ..Self::default() };
    }

    /// Whether the lease of this claim stands, by what the store has promised.
    pub(crate) fn stands(&self, tag: Tag, now: Tick) -> bool {
        self.grants.iter().any(|grant| grant.tag == tag && grant.until > now)
    }

    /// Whether this start of a node was granted a claim and never told how it ended.
    pub(crate) fn left_unsettled(&self, dead: impl Fn(Tag) -> bool) -> bool {
        self.grants.iter().any(|grant| dead(grant.tag) && !grant.settled)
    }

    /// The store has served a request.
    pub(crate) fn served(
        &mut self,
        (setup, now): (&Setup, Tick),
        (op, reply): (&Op, &Reply),
        (before, after): (&View, &View),
        facts: &mut Facts,
    ) {
        let tag = Tag::from(op.token());
        let (attempt, until) = (op.attempt().unwrap_or(0), (now + setup.ttl).min(setup.far()));
        facts.note(Fact::StaleHolderChanged, self.wronged(tag, (op, reply), (before, after)));
        match reply {
            Reply::Claim(Claim::Claimed { attempt, .. }) => self.granted(setup, (tag, *attempt), now, facts),
            Reply::Claim(Claim::Early { .. }) => facts.note(Fact::TooEarly, true),
            Reply::Renewal(Renewal::Renewed | Renewal::Restored) if self.was_unlocked(tag, attempt) => {
                facts.note(Fact::UnlockUndone, true);
            }
            Reply::Renewal(Renewal::Renewed) => self.leased((tag, attempt), until, now, facts),
            Reply::Renewal(Renewal::Restored) => {
                self.count((tag, attempt), facts);
                self.leased((tag, attempt), until, now, facts);
            }
            Reply::Settlement(answer) => {
                self.remember((tag, attempt));
                self.completed((tag, answer), after, facts);
            }
            Reply::Release(answer) => {
                self.remember((tag, attempt));
                self.released(tag, (op.kind(), answer), now, facts);
            }
            Reply::Claim(_) | Reply::Renewal(_) => {}
            // Of locks, of which nothing is asked here.
            Reply::Acquired(_) | Reply::LockRenewal(_) | Reply::LockRelease(_) => {}
            Reply::Pause(_) | Reply::Intervention(_) => {}
        }
        self.look_at_done(after, facts);
    }

    /// I5, I6: what a grant may be.
    fn granted(&mut self, setup: &Setup, (tag, attempt): (Tag, u32), now: Tick, facts: &mut Facts) {
        let own = |grant: &&Grant| grant.tag == tag;
        // One that was made within the slot is told after its end too, to be given back.
        let told_again = self.grants.iter().filter(own).any(|grant| grant.attempt == attempt);
        facts.note(Fact::GrantedPaused, !told_again && self.is_paused());
        facts.note(Fact::GrantedOutside, !told_again && (now < setup.begin || now >= setup.end));
        if let Some(first) = self.grants.iter().filter(own).max_by_key(|grant| grant.attempt) {
            // Also when its lease has lapsed: the answer may have been lost. A token whose run is over is granted nothing.
            // One that was forgiven counts no more, and whoever did not hear of it is granted another.
            let newest = self.newest() == first.attempt && first.attempt > self.forgiven;
            let same = first.attempt == attempt;
            facts.note(Fact::TokenGrantedTwice, first.settled || newest && !same);
            facts.note(Fact::LostReplyFree, same);
        }
        self.count((tag, attempt), facts);
        self.leased((tag, attempt), (now + setup.ttl).min(setup.far()), now, facts);
    }

    /// I2, I5: one more attempt.
    fn count(&mut self, (tag, attempt): (Tag, u32), facts: &mut Facts) {
        if self.grants.iter().any(|grant| (grant.tag, grant.attempt) == (tag, attempt)) {
            return;
        }
        facts.note(Fact::AttemptFell, self.grants.iter().any(|grant| grant.attempt >= attempt));
        self.grants.push(Grant::new((tag, attempt), false));
        facts.note(Fact::Granted, true);
        let grants = u32::try_from(self.grants.iter().filter(|grant| !grant.remembered).count()).expect("few grants");
        facts.note(Fact::TooManyGrants, grants - self.refunds > MAX_ATTEMPTS);
    }

    /// A settlement of an attempt that the store has forgotten makes it known again.
    fn remember(&mut self, (tag, attempt): (Tag, u32)) {
        if !self.grants.iter().any(|grant| (grant.tag, grant.attempt) == (tag, attempt)) {
            self.grants.push(Grant::new((tag, attempt), true));
        }
    }

    /// I1: this lease stands until then, by the store's word.
    fn leased(&mut self, (tag, attempt): (Tag, u32), until: Tick, now: Tick, facts: &mut Facts) {
        facts.note(Fact::TwoLeases, self.grants.iter().any(|grant| grant.tag != tag && grant.until > now));
        for grant in self.grants.iter_mut().filter(|grant| (grant.tag, grant.attempt) == (tag, attempt)) {
            grant.until = grant.until.max(until);
        }
    }

    /// I3: the first to be done stays.
    fn completed(&mut self, (tag, answer): (Tag, &Settlement), after: &View, facts: &mut Facts) {
        // A repetition does not undo what an operator has opened since.
        if self.done_by.is_none() && self.grants.iter().any(|grant| grant.tag == tag && grant.reopened) {
            facts.note(Fact::ResetUndone, matches!(after.record.mark, Mark::Done(_)));
            return;
        }
        let first = *self.done_by.get_or_insert(tag);
        facts.note(Fact::DoneTakenBack, first != tag && *answer == Settlement::Recorded);
        for grant in &mut self.grants {
            grant.until = 0;
            grant.settled |= grant.tag == tag;
            grant.succeeded |= grant.tag == tag;
        }
    }

    fn released(&mut self, tag: Tag, (kind, answer): (Kind, &Release), now: Tick, facts: &mut Facts) {
        for grant in self.grants.iter_mut().filter(|grant| grant.tag == tag) {
            if kind == Kind::GiveBack && grant.until > now && *answer == Release::Released {
                self.refunds += 1;
                facts.note(Fact::Refunded, true);
            }
            grant.until = 0;
            grant.settled = true;
        }
    }

    /// I3 and I7: done stays done, by the same run; and some run did end well.
    fn look_at_done(&self, after: &View, facts: &mut Facts) {
        let mark = match &after.record.mark {
            Mark::Done(mark) => Some(mark.by.node.clone()),
            _ => None,
        };
        facts.note(Fact::DoneWithoutSuccess, mark.is_some() && !self.succeeded);
        if let Some(first) = self.done_by {
            facts.note(Fact::DoneTakenBack, mark != Some(name(first.node)));
        }
    }

    /// I4: a renewal, failure or refund whose lease does not stand may write its own run's record, and nothing else. A lease
    /// that nobody followed and whose run goes on may be set again.
    fn wronged(&self, tag: Tag, (op, reply): (&Op, &Reply), (before, after): (&View, &View)) -> bool {
        let own = matches!(&before.record.mark, Mark::Leased { token, .. } if *token == op.token());
        if own || matches!(op.kind(), Kind::Claim | Kind::Complete) {
            return false;
        }
        let followed = |grant: &Grant| grant.tag != tag && Some(grant.attempt) >= op.attempt();
        let settled = |grant: &Grant| grant.tag == tag && grant.settled;
        match reply {
            Reply::Renewal(Renewal::Renewed) => true,
            Reply::Renewal(Renewal::Restored) => {
                before.record.mark != Mark::Free || self.grants.iter().any(|grant| followed(grant) || settled(grant))
            }
            _ => !same(before, after, |run| Tag::from(run.token) != tag),
        }
    }

    /// L2: the verdict is recorded, once, and is the right one.
    pub(crate) fn closed(&mut self, verdict: Verdict, facts: &mut Facts) {
        let used_up = self.used() >= MAX_ATTEMPTS;
        // Nobody was ever granted it, and it was paused for some of its time.
        let skipped = self.touched && self.grants.is_empty();
        facts.note(Fact::Skipped, verdict == Verdict::Skipped);
        let right = match verdict {
            Verdict::Done => self.is_done(),
            Verdict::Failed => !self.is_done() && used_up,
            Verdict::Missed => !self.is_done() && !used_up && !skipped,
            Verdict::Skipped => !self.is_done() && skipped,
        };
        facts.note(Fact::WrongVerdict, !right);
        facts.note(Fact::ToldTwice, self.told);
        self.told = true;
    }
}

/// Whether two views are the same in all that is not a time of a record, and not of the runs that are left out.
fn same(before: &View, after: &View, of: impl Fn(&RunRecord) -> bool) -> bool {
    let mark = |view: &View| match &view.record.mark {
        Mark::Leased { by, token, .. } => (Some(by.clone()), Some(*token), view.until),
        Mark::Backoff { by, .. } => (Some(by.clone()), None, view.until),
        Mark::Done(mark) => (Some(mark.by.clone()), None, None),
        Mark::Free => (None, None, None),
    };
    let runs = |view: &View| -> Vec<_> {
        let runs = view.record.runs.iter().filter(|run| of(run));
        let mut runs: Vec<_> = runs.map(|run| (run.attempt, run.token, run.outcome)).collect();
        // They are sorted by their times, which a ledger's key leaves out.
        runs.sort_by_key(|run| (run.0, run.1));
        runs
    };
    // Not the attempts that are shown: those count what the records tell, also a stale holder's own.
    let counts = |view: &View| (view.counter, view.record.forgiven);
    mark(before) == mark(after) && runs(before) == runs(after) && counts(before) == counts(after)
}
