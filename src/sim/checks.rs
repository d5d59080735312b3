//! The promises that are checked, what was found when one is broken, and which one is broken when a store answers or keeps something
//! else than its shadow.

use std::fmt;

use chrono::{DateTime, Utc};

use crate::clock::later;
use crate::sim::engine::Time;
use crate::sim::shadow::Shadow;
use crate::slot::{Attempt, Mark, SlotRecord, Verdict};
use crate::store::{Claim, Closing, Renewal};

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
    /// Something is kept for ever.
    Leak,
    /// By the nodes' journals something was done that nothing explains.
    Journals,
    /// The simulation itself does not move on.
    Stuck,
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which one.
    pub check: Check,
    /// When, since the world began.
    pub at: Time,
    /// What happened.
    pub text: String,
}

impl fmt::Display for Finding {
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
