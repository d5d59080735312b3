//! What truly happened: every slot, every run of a command, and what was told of it, which only the judge reads; and what came of
//! many worlds, in figures.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, Utc};
use cronward::event::Event as Told;
use cronward::reply::ClaimAnswer;
use cronward::slot::{Attempt, Outcome, Slot, Token, Verdict};

use crate::engine::Time;
use crate::faults::Fault;
use crate::message::Process;

/// One slot.
#[derive(Clone, Debug)]
pub(super) struct SlotHistory {
    pub(super) slot: Slot,
    /// Its first tick, delayed as the job says.
    pub(super) tick: DateTime<Utc>,
    /// Runs, in the order of their starts.
    pub(super) runs: Vec<usize>,
    /// Runs of which their node told of a doubt, a loss, a restored lease or another one in their place, or that they have no
    /// guard.
    pub(super) alarms: Vec<(Process, Attempt)>,
    /// The nodes that had the job when its tick came.
    pub(super) attended: Vec<Process>,
    /// The nodes that were told that their success is recorded, and are to tell a store again that forgets it.
    pub(super) keepers: Vec<Process>,
    /// A success was recorded, whatever became of the record.
    pub(super) was_done: bool,
    /// How often the store lost the slot's lease or its done marker.
    pub(super) losses: u32,
    /// Successes that were recorded under a lease that stood.
    pub(super) secured: u32,
    /// Successes that were told.
    pub(super) told_successes: usize,
    /// The first verdict that was recorded.
    pub(super) verdict: Option<Verdict>,
    /// Who recorded a verdict, in order.
    pub(super) recorders: Vec<Process>,
    /// The verdict was told so often.
    pub(super) announced: u32,
    /// The store lost a lease, a wait or the count of the slot.
    pub(super) lost: bool,
    /// The store lost its done marker.
    pub(super) done_lost: bool,
    /// A node ended its look at the slot for want of attempts.
    pub(super) given_up: bool,
    /// Every grant of the slot.
    pub(super) grants: u32,
    /// When a command of it could last not be started.
    pub(super) not_started: Option<Time>,
    /// Requests for locks, in order.
    pub(super) lock_requests: Vec<Token>,
    /// Runs of which their node told that their locks were lost, in doubt, set again or had by another.
    pub(super) lock_alarms: Vec<(Process, Attempt)>,
    /// Who has waited for its locks in vain, each time.
    pub(super) in_vain: Vec<(Process, Time)>,
}

/// One run of a command.
#[derive(Clone, Debug)]
pub(super) struct SimulatedRun {
    pub(super) by: Process,
    pub(super) task: u64,
    pub(super) attempt: Attempt,
    pub(super) token: Token,
    pub(super) guarded: bool,
    pub(super) started: Time,
    pub(super) ended: Option<Time>,
    pub(super) code: Option<i32>,
    /// It was told to stop.
    pub(super) stopped: bool,
    /// It ended because its node died.
    pub(super) orphaned: bool,
    /// Its node was stopped while it ran.
    pub(super) paused: bool,
    /// The node heard that its end was recorded.
    pub(super) settled: bool,
    /// Later runs of the slot whose records the store lost before the end of this one was settled: no answer of the store
    /// could name them any more.
    pub(super) unnameable: Vec<Token>,
    /// It does not heed TERM.
    pub(super) stubborn: bool,
    /// Which of its ends is planned.
    pub(super) plan: u32,
    /// The request for its locks.
    pub(super) locks: Option<Token>,
}

impl SimulatedRun {
    /// It did its work.
    pub(super) fn succeeded(&self) -> bool {
        self.code == Some(0) && !self.stopped && !self.orphaned
    }

    /// Both were running at some moment.
    pub(super) fn overlaps(&self, later: &Self) -> bool {
        self.ended.is_none_or(|ended| ended > later.started)
    }
}

impl SlotHistory {
    pub(super) const fn new(slot: Slot, tick: DateTime<Utc>) -> Self {
        Self {
            slot,
            tick,
            runs: Vec::new(),
            alarms: Vec::new(),
            attended: Vec::new(),
            keepers: Vec::new(),
            was_done: false,
            losses: 0,
            secured: 0,
            told_successes: 0,
            verdict: None,
            recorders: Vec::new(),
            announced: 0,
            lost: false,
            done_lost: false,
            given_up: false,
            grants: 0,
            not_started: None,
            lock_requests: Vec::new(),
            lock_alarms: Vec::new(),
            in_vain: Vec::new(),
        }
    }

    /// A node told something of the slot.
    pub(super) fn hear(&mut self, by: Process, told: &Told) {
        match told {
            Told::RunEnded { outcome: Outcome::Success, .. } => self.told_successes += 1,
            Told::LeaseInDoubt { attempt, .. }
            | Told::LeaseLost { attempt, .. }
            | Told::LeaseRestored { attempt }
            | Told::Overtaken { attempt, .. }
            | Told::SettlementGivenUp { attempt, .. }
            | Told::RunEnded { outcome: Outcome::LostLease, attempt, .. }
            | Told::RunStarted { guarded: false, attempt, .. } => self.alarms.push((by, *attempt)),
            Told::AttemptsUsedUp { .. } => self.given_up = true,
            Told::ClaimAnswered { answer: ClaimAnswer::Exhausted, .. } => self.given_up = true,
            _ => {}
        }
    }
}

macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident: $word:literal,)*) => {
        /// What became of slots.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Classes { $($(#[$doc])* pub $name: u64,)* }

        impl Classes {
            /// Adds another count.
            pub const fn add(&mut self, other: &Self) { $(self.$name += other.$name;)* }

            /// Each class with its words.
            pub fn rows(&self) -> Vec<(&'static str, u64)> { vec![$(($word, self.$name),)*] }

            /// Each class with its name, for programs.
            pub fn named(&self) -> Vec<(&'static str, u64)> { vec![$((stringify!($name), self.$name),)*] }
        }
    };
}

classes! {
    /// All.
    slots: "slots",
    /// One run, and it succeeded.
    once: "done by one run",
    /// Several runs one after the other, the last of which succeeded.
    retried: "done after failed, stopped or crashed runs",
    /// Work was done more than once.
    repeated: "done more than once",
    /// Of these: the store had lost the done marker.
    repeated_after_loss: "  of these: the store had lost the done marker",
    /// Of these: a run without a guard, which the job asked for.
    repeated_unguarded: "  of these: a run without a guard, as on_store_error = \"run\" asks for",
    /// Of these: the success could not be recorded before the lease lapsed.
    repeated_after_lapse: "  of these: success not recorded before the lease lapsed",
    /// Two runs at a time.
    overlapped: "with runs that overlapped",
    /// Attempts used up.
    failed: "failed: attempts used up",
    /// Not done though some were left.
    missed: "missed: not done, attempts left",
    /// Of these: nothing ever ran.
    never_ran: "  of these: nothing ran",
    /// A grant to nobody: its node had died, or given up waiting.
    unused_grants: "grants that no run followed",
    /// Runs of commands.
    runs: "runs",
    /// The store's answers.
    requests: "requests",
    /// Attempts that were told to wait for their locks.
    queued: "attempts that waited for locks",
    /// Attempts whose command was not started for want of locks.
    in_vain: "attempts that waited for locks in vain",
    /// Runs whose locks were lost, or in doubt.
    locks_lost: "runs whose locks were lost, in doubt, or set again",
}

/// Figures of one or many worlds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Worlds.
    pub worlds: u64,
    /// Of these: slots are shorter than what strikes them.
    pub short: u64,
    /// Of these: jobs name locks.
    pub locked: u64,
    /// Of these: the offset of their time zone from UTC changes while they last.
    pub changes_of_offset: u64,
    /// Of these: the checker of journals judged what their nodes wrote, of so many slots.
    pub judged: u64,
    /// These slots.
    pub judged_slots: u64,
    /// What became of slots.
    pub classes: Classes,
    /// How often each fault struck.
    pub faults: BTreeMap<&'static str, u64>,
    /// From the end of a dead node's lease to the next grant, where another node was well and waited for it: how often it
    /// took so many milliseconds.
    pub recoveries_ms: BTreeMap<u64, u64>,
}

impl Summary {
    pub(super) fn count(&mut self, fault: Fault) {
        *self.faults.entry(fault.as_str()).or_default() += 1;
    }

    /// Adds the figures of another.
    pub fn add(&mut self, other: &Self) {
        self.worlds += other.worlds;
        self.short += other.short;
        self.locked += other.locked;
        self.changes_of_offset += other.changes_of_offset;
        self.judged += other.judged;
        self.judged_slots += other.judged_slots;
        self.classes.add(&other.classes);
        for (fault, count) in &other.faults {
            *self.faults.entry(fault).or_default() += count;
        }
        for (took, count) in &other.recoveries_ms {
            *self.recoveries_ms.entry(*took).or_default() += count;
        }
    }

    /// The recovery that so many of a hundred do not exceed, in milliseconds; none when there was none.
    pub fn recovery_ms(&self, percent: u64) -> Option<u64> {
        let all: u64 = self.recoveries_ms.values().sum();
        let mut left = (all * percent).div_ceil(100).max(1);
        self.recoveries_ms.iter().find_map(|(took, count)| {
            let reached = *count >= left;
            left = left.saturating_sub(*count);
            reached.then_some(*took)
        })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>12}  worlds", self.worlds)?;
        writeln!(f, "{:>12}  of these: with slots of one to five seconds", self.short)?;
        writeln!(f, "{:>12}  of these: with jobs that name locks", self.locked)?;
        writeln!(f, "{:>12}  of these: the clocks of their time zone change", self.changes_of_offset)?;
        let judged =
            format!("of these: the journals of their nodes were judged as well, with {} slots", self.judged_slots);
        writeln!(f, "{:>12}  {judged}", self.judged)?;
        for (words, count) in self.classes.rows() {
            writeln!(f, "{count:>12}  {words}")?;
        }
        writeln!(f, "faults")?;
        for (fault, count) in &self.faults {
            writeln!(f, "{count:>12}  {fault}")?;
        }
        Ok(())
    }
}
