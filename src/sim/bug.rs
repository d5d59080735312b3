//! Bugs to be switched on one at a time: the simulator must catch each of them, or what it lets pass proves nothing. None of
//! them is in the code that is simulated: they change the store's rules or the driver around the machine.

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The store renews whoever asks.
    RenewsAnybody,
    /// The store releases the lease whoever asks.
    ReleasesAnybody,
    /// The store does not know a claim again whose answer was lost.
    ClaimForgetsItsToken,
    /// The store keeps the attempt counter for ever.
    CounterWithoutTtl,
    /// The store grants a slot that is done.
    DoneIsNotAbsorbing,
    /// The store judges the slot's window by the clock of whoever asks.
    WindowByNodesClock,
    /// The node takes an error for a grant.
    ErrorIsAGrant,
    /// The node renews only when the whole TTL is over.
    RenewsAtTheTtl,
    /// The node goes on renewing after the run was settled.
    WatchdogOutlivesTheRun,
    /// The node waits for wake-ups alone.
    WaitsForHintsOnly,
    /// The node asks for a slot's verdict once, whatever comes of it.
    ClosesOnce,
    /// The node does not tell of lost leases and overtaken runs.
    Mute,
    /// The node stops no command whose lease is lost.
    NeverStops,
    /// The store has one ledger for all namespaces.
    OneNamespace,
}

impl Bug {
    /// Every bug.
    pub const ALL: &'static [Self] = &[
        Self::RenewsAnybody,
        Self::ReleasesAnybody,
        Self::ClaimForgetsItsToken,
        Self::CounterWithoutTtl,
        Self::DoneIsNotAbsorbing,
        Self::WindowByNodesClock,
        Self::ErrorIsAGrant,
        Self::RenewsAtTheTtl,
        Self::WatchdogOutlivesTheRun,
        Self::WaitsForHintsOnly,
        Self::ClosesOnce,
        Self::Mute,
        Self::NeverStops,
        Self::OneNamespace,
    ];
}

impl std::str::FromStr for Bug {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let bug = Self::ALL.iter().find(|bug| format!("{bug:?}") == word);
        bug.copied().ok_or_else(|| format!("unknown bug {word:?}; known are {:?}", Self::ALL))
    }
}
