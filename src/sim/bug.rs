//! Bugs to be switched on one at a time: the simulator must catch each of them, or what it lets pass proves nothing. None of
//! them is in the code that is simulated: they change the store's rules or the driver around the machine. One that the model
//! (`tests/protocol/model`) has as well has the same name there.

use crate::sim::checks::Check;

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
            Self::CounterWithoutTtl => &[Check::Leak],
            Self::TimersFireAtOnce => &[Check::Stuck],
        }
    }
}

impl std::str::FromStr for Bug {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let bug = Self::ALL.iter().find(|bug| format!("{bug:?}") == word);
        bug.copied().ok_or_else(|| format!("unknown bug {word:?}; known are {:?}", Self::ALL))
    }
}
