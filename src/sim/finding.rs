//! What the simulator found: which promise was broken, when, and how.

use std::fmt;

use crate::sim::time::Time;

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
