//! The promises that are checked, what was found when one is broken, and which one is broken when a store answers or keeps something
//! else than its shadow; and the bugs to be switched on one at a time: the simulator must catch each of them, or what it lets pass
//! proves nothing. None of them is in the code that is simulated: they change the store's rules or the driver around the machine. One
//! that the model (`tests/protocol/model`) has as well has the same name there.

use std::fmt;

use chrono::{DateTime, Utc};
use cronward::clock::later;
use cronward::slot::{Attempt, Mark, SlotRecord, Verdict};
use cronward::store::{Claim, Closing, Renewal};

use crate::engine::Time;
use crate::shadow::Shadow;

macro_rules! checks {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The promises that are checked. The numbers are those of the protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Check { $($(#[$doc])* $name,)* }

        impl Check {
            /// Every promise.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }
    };
}

checks! {
    /// At most one unexpired lease per slot.
    I1,
    /// Attempt numbers of a slot strictly rise.
    I2,
    /// Done is absorbing.
    I3,
    /// A stale holder changes nothing of another's.
    I4,
    /// Never more attempts than allowed; the same token is one grant.
    I5,
    /// No run is granted outside of its slot.
    I6,
    /// Done means that some run exited with success.
    I7,
    /// An error never starts a command.
    I8,
    /// Namespaces never touch.
    I9,
    /// A live node that reaches the store starts a run in time.
    L1,
    /// Every slot ends in a recorded verdict.
    L2,
    /// A job owes no scheduled time from before the cluster first knew it, and a node forgets no first sight.
    Owed,
    /// No job is left idle by leases that nobody uses.
    L3,
    /// Data that a store lost cost more than one repeat of a slot that was running or done, or was not told again by who
    /// had it.
    Loss,
    /// A store's answer or record is another than the protocol's.
    Answer,
    /// A lease lapsed though nothing kept its holder from renewing it.
    Lapse,
    /// A command was started under a lease that could not be trusted any more.
    Trust,
    /// A repeat, an overlap or a verdict that nobody was told of.
    Silence,
    /// With `on_lost = "kill"` a command outlived its lease.
    Outlived,
    /// With `concurrency = "forbid"` a run was granted beside another slot's.
    Beside,
    /// A reported failure was not tried again in time, or not on another node.
    Retry,
    /// Something was sent for a run that had been settled.
    Afterwards,
    /// A node that reached its store never recorded how a command had ended.
    Unrecorded,
    /// Something is kept for ever.
    Leak,
    /// Two commands ran at once whose locks exclude each other, and nobody told of it; or with `on_lost = "kill"` at all.
    K1,
    /// A command was started without the locks that its job names.
    Unlocked,
    /// Locks that nobody needs any more were kept from others.
    Kept,
    /// An attempt that only waited for its locks was counted.
    Waited,
    /// What a node told of locks is not what it had heard of them.
    Untold,
    /// By the nodes' journals something was done that nothing explains.
    Journals,
    /// The simulation itself does not move on.
    Stuck,
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenPromise {
    /// Which one.
    pub check: Check,
    /// When, since the world began.
    pub at: Time,
    /// What happened.
    pub text: String,
}

impl fmt::Display for BrokenPromise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:.3} s: {}", self.check, self.at.as_secs_f64(), self.text)
    }
}

/// A broken promise, before it is known when.
pub(super) type Broken = (Check, String);

pub(super) fn differs(answer: &str, expected: &str, check: Check) -> Option<Broken> {
    (answer != expected).then(|| (check, format!("the store answered {answer:?} where it is to answer {expected:?}")))
}

/// A claim's answer, looked at before the shadow takes the grant. `own`: the attempt whose lease this claim's token holds.
pub(super) fn claim(answer: &Claim, expected: &'static str, shadow: &Shadow, own: Option<Attempt>) -> Option<Broken> {
    let word = answer.as_str();
    if word != expected {
        let check = match (word, expected) {
            ("claimed", "held") => Check::I1,
            ("claimed", "done") => Check::I3,
            ("claimed", "early" | "closed") => Check::I6,
            ("claimed", "exhausted" | "backoff") => Check::I5,
            ("claimed", "blocked") => Check::Beside,
            _ => Check::Answer,
        };
        return differs(word, expected, check);
    }
    let Claim::Claimed { attempt, used, .. } = answer else { return None };
    let next = own.unwrap_or(shadow.known + 1);
    if *attempt != next {
        return Some((Check::I2, format!("attempt {attempt} was granted where it is to be {next}")));
    }
    let expected = if own.is_some() { shadow.used() } else { shadow.used() + 1 };
    (*used != expected).then(|| (Check::I5, format!("{used} attempts are said to be used where {expected} are")))
}

pub(super) fn renewal(answer: &Renewal, expected: &'static str) -> Option<Broken> {
    let word = match answer {
        Renewal::Renewed => "renewed",
        Renewal::Restored => "restored",
        Renewal::Lost { .. } => "lost",
        Renewal::Done(_) => "done",
    };
    differs(word, expected, Check::I4)
}

pub(super) fn close(answer: &Closing, expected: &'static str, verdict: Option<Verdict>) -> Option<Broken> {
    let told = match answer {
        Closing::First(verdict) | Closing::Already(verdict) => Some(*verdict),
        Closing::Running { .. } | Closing::Open { .. } => None,
    };
    differs(closing(answer), expected, Check::Answer).or_else(|| {
        let wrong = told.is_some() && told != verdict;
        wrong.then(|| (Check::I7, format!("the verdict is said to be {told:?} where it is {verdict:?}")))
    })
}

/// What is kept of a slot, after a step.
pub(super) fn record(record: &SlotRecord, shadow: &Shadow, now: DateTime<Utc>) -> Option<Broken> {
    let stands = match &record.mark {
        Mark::Free => None,
        Mark::Leased { token, remaining, .. } => Some(("a lease", Some(*token), Some(later(now, *remaining)))),
        Mark::Backoff { remaining, .. } => Some(("a wait", None, Some(later(now, *remaining)))),
        Mark::Done(_) => Some(("done", None, None)),
    };
    let expected = if shadow.done_at(now).is_some() {
        Some(("done", None, None))
    } else if let Some(lease) = shadow.lease_at(now) {
        Some(("a lease", Some(lease.token), Some(lease.until)))
    } else {
        shadow.wait_at(now).map(|wait| ("a wait", None, Some(wait.until)))
    };
    if stands != expected {
        let done = expected.is_some_and(|(what, ..)| what == "done");
        let check = if done { Check::I3 } else { Check::I4 };
        return Some((check, format!("{stands:?} stands there where it is to be {expected:?}")));
    }
    let (counts, known) = ((record.attempts, record.forgiven), (shadow.known, shadow.forgiven));
    if counts != known {
        return Some((Check::I2, format!("attempts and forgiven are {counts:?} where they are to be {known:?}")));
    }
    let verdict = record.verdict.as_ref().map(|recorded| recorded.verdict);
    (verdict != shadow.verdict)
        .then(|| (Check::I3, format!("the verdict is {verdict:?} where it is to be {:?}", shadow.verdict)))
}

/// The word of a close's answer.
const fn closing(answer: &Closing) -> &'static str {
    match answer {
        Closing::First(_) => "first",
        Closing::Already(_) => "already",
        Closing::Running { .. } => "running",
        Closing::Open { .. } => "open",
    }
}

macro_rules! bugs {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A bug.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Bug { $($(#[$doc])* $name,)* }

        impl Bug {
            /// Every bug.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }
    };
}

bugs! {
    /// The store grants a slot that somebody else holds.
    HeldIgnored,
    /// The store does not know a claim again whose lease stands.
    TokenIgnored,
    /// The store does not ask how many attempts there were.
    LimitIgnored,
    /// The store does not look at what else runs of the job.
    OthersIgnored,
    /// The store renews whoever asks.
    RenewsAnybodys,
    /// The store releases the lease whoever asks.
    PlainDelete,
    /// The store forgets the counter with a release.
    CounterForgotten,
    /// The store keeps the attempt counter for ever.
    CounterWithoutTtl,
    /// The store grants a slot that is done.
    DoneIsNotAbsorbing,
    /// The store judges the slot's window by the clock of whoever asks.
    WindowByNodesClock,
    /// The store says of a slot that is over that it is closed before it looks for the caller's token, and so did the protocol: a
    /// node whose claim was granted without an answer does not hear of it any more.
    ClosedBeforeItsOwnToken,
    /// The store says of a verdict that it is new, however often it is asked for.
    ClosedAgain,
    /// The store has one ledger for all namespaces.
    OneNamespace,
    /// The node takes an error for a grant.
    ErrorIsGrant,
    /// The node says of a run that failed that it is done.
    FailureIsDone,
    /// The node sends the output of a success again that the store refused.
    OutputInsistedOn,
    /// The node's clock stands still while it waits for the answer to a claim, as one that does not count suspend.
    ClockStops,
    /// The node renews only when the whole TTL is over.
    RenewsAtTheTtl,
    /// The node goes on renewing after the run was settled.
    WatchdogOutlivesTheRun,
    /// The node's waits never end: it looks when it is told to.
    NeverLooksAgain,
    /// The node looks half a second after its wait is over.
    LooksLate,
    /// Whatever a timer is set to, it fires at once.
    TimersFireAtOnce,
    /// The node takes each job for one that was always known.
    OwesFromBefore,
    /// The node registers each job as one that it has just seen.
    RegistersAnew,
    /// The node asks for a slot's verdict once, whatever comes of it.
    ClosesOnce,
    /// The node does not tell of lost leases and overtaken runs.
    Mute,
    /// The node stops no command.
    KillIgnored,
    /// The node does not tell a store again what it had done and the store has forgotten.
    NeverDoneAgain,
    /// The node tells a store again that a run was done which had failed.
    FailureDoneAgain,
    /// The store lets in two who ask for a lock each for itself alone.
    ExclusiveAdmitsTwo,
    /// The node starts the commands of jobs without their locks.
    StartsWithoutLocks,
    /// The node keeps a slot's locks while it waits for a retry.
    LocksKeptInRetry,
    /// The node does not release locks.
    LocksNotReleased,
    /// The node takes whatever comes of a renewal of its locks for a renewal: its trust in them has no end.
    LocksNeverLost,
    /// The node reports an attempt that only waited for its locks as failed.
    WaitingCounts,
    /// The node does not tell that it holds its locks.
    LocksUntold,
}

impl Bug {
    /// The checks of which one must find it; others may, too.
    pub const fn checks(self) -> &'static [Check] {
        match self {
            Self::HeldIgnored => &[Check::I1],
            Self::CounterForgotten => &[Check::I2],
            Self::TokenIgnored => &[Check::I2, Check::I5, Check::Answer],
            Self::DoneIsNotAbsorbing => &[Check::I3],
            Self::RenewsAnybodys => &[Check::I4],
            Self::PlainDelete => &[Check::I3, Check::I4],
            Self::LimitIgnored => &[Check::I5],
            Self::WindowByNodesClock => &[Check::I6],
            Self::FailureIsDone | Self::FailureDoneAgain => &[Check::I7],
            Self::ErrorIsGrant => &[Check::I8],
            Self::OneNamespace => &[Check::I9],
            Self::OwesFromBefore | Self::RegistersAnew => &[Check::Owed],
            Self::NeverLooksAgain => &[Check::L1],
            Self::ClosesOnce => &[Check::L2],
            Self::ClosedBeforeItsOwnToken => &[Check::L3],
            Self::NeverDoneAgain => &[Check::Loss],
            Self::ClosedAgain => &[Check::Answer],
            Self::RenewsAtTheTtl => &[Check::Lapse],
            Self::ClockStops => &[Check::Trust],
            Self::Mute => &[Check::Silence],
            Self::KillIgnored => &[Check::Outlived],
            Self::OthersIgnored => &[Check::Beside],
            Self::LooksLate => &[Check::Retry],
            Self::WatchdogOutlivesTheRun => &[Check::Afterwards],
            Self::OutputInsistedOn => &[Check::Unrecorded],
            Self::CounterWithoutTtl => &[Check::Leak],
            Self::TimersFireAtOnce => &[Check::Stuck],
            Self::ExclusiveAdmitsTwo | Self::LocksNeverLost => &[Check::K1],
            Self::StartsWithoutLocks => &[Check::Unlocked],
            Self::LocksKeptInRetry | Self::LocksNotReleased => &[Check::Kept],
            Self::WaitingCounts => &[Check::Waited],
            Self::LocksUntold => &[Check::Untold],
        }
    }

    /// Whether it shows only where jobs name locks.
    pub(super) const fn is_of_locks(self) -> bool {
        matches!(
            self,
            Self::ExclusiveAdmitsTwo
                | Self::StartsWithoutLocks
                | Self::LocksKeptInRetry
                | Self::LocksNotReleased
                | Self::LocksNeverLost
                | Self::WaitingCounts
                | Self::LocksUntold
        )
    }
}

impl std::str::FromStr for Bug {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let bug = Self::ALL.iter().find(|bug| format!("{bug:?}") == word);
        bug.copied().ok_or_else(|| format!("unknown bug {word:?}; known are {:?}", Self::ALL))
    }
}
