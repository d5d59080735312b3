//! What can go wrong in a world, and how often. Swarm testing (Groce et al. 2012): each seed draws its own mix, because a mix
//! of everything hides what two faults alone would show.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::engine::Dice;

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// A kind of fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault { $($(#[$doc])* $name,)* }

        impl Fault {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its word on the command line.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
        }
    };
}

faults! {
    /// A request never reaches the store.
    RequestLost = "request-lost",
    /// It is carried out and the answer never comes.
    ReplyLost = "reply-lost",
    /// A message takes long, longer than others sent after it.
    Delay = "delay",
    /// A request reaches the store twice, the second time much later.
    Duplicate = "duplicate",
    /// A wake-up is lost.
    HintLost = "hint-lost",
    /// One node cannot reach the store for a while.
    Partition = "partition",
    /// A node dies at any moment.
    Crash = "crash",
    /// A node dies just before or after it asks something of the store, or as it starts a command.
    CrashAtStep = "crash-at-step",
    /// A node is stopped for a while, mostly longer than a lease.
    Pause = "pause",
    /// The store is away for a while.
    StoreDown = "store-down",
    /// The store answers late for a while.
    StoreSlow = "store-slow",
    /// The store forgets everything.
    Wipe = "wipe",
    /// The store loses what it wrote last.
    Failover = "failover",
    /// A node's wall clock is wrong.
    ClockOff = "clock-off",
    /// A node's clocks run fast or slow.
    ClockDrift = "clock-drift",
    /// A node's wall clock is stepped.
    ClockJump = "clock-jump",
    /// A node is shut down properly and started again.
    Drain = "drain",
    /// A node reads a file in which something has changed.
    Reload = "reload",
    /// Nodes have different files.
    Unlike = "unlike",
    /// The command cannot be started.
    NoStart = "no-start",
    /// The store refuses the end of a run with its output, or a long output takes longer than the time-out, however often it is sent.
    ContentRefused = "content-refused",
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The first seed whose commands write output in half of the worlds, which the store refuses or answers too late.
pub const OUTPUTS_FROM: u64 = 4_000_000_000_000;

/// A set of kinds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FaultSet(u32);

impl FaultSet {
    /// Every kind.
    pub const ALL: Self = Self((1 << Fault::ALL.len()) - 1);
    /// None.
    pub const NONE: Self = Self(0);

    /// Whether the kind is in it.
    pub const fn has(self, fault: Fault) -> bool {
        self.0 & (1 << fault as u32) != 0
    }

    /// With this kind.
    #[must_use]
    pub const fn with(self, fault: Fault) -> Self {
        Self(self.0 | (1 << fault as u32))
    }

    /// Without this kind.
    #[must_use]
    pub const fn without(self, fault: Fault) -> Self {
        Self(self.0 & !(1 << fault as u32))
    }

    /// Those in both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Its kinds, in order.
    pub fn kinds(self) -> impl Iterator<Item = Fault> {
        Fault::ALL.iter().copied().filter(move |fault| self.has(*fault))
    }

    /// The mix of a seed: one world in twelve has no faults, the others have each kind with an odds of one in three. Refused content has
    /// a stream of its own: the worlds of seeds before [`OUTPUTS_FROM`] stay what they were.
    pub(super) fn drawn(seed: u64) -> Self {
        let mix = Self::of_messages_and_nodes(&mut Dice::new(seed, 2));
        let refuses = seed >= OUTPUTS_FROM && Dice::new(seed, 9).below(2) == 0;
        if refuses { mix.with(Fault::ContentRefused) } else { mix }
    }

    fn of_messages_and_nodes(dice: &mut Dice) -> Self {
        if dice.below(12) == 0 {
            return Self::NONE;
        }
        let odds = dice.pick(&[150_000, 300_000, 500_000], 300_000);
        let kinds = Fault::ALL.iter().filter(|fault| **fault != Fault::ContentRefused);
        kinds.fold(Self::NONE, |set, fault| if dice.chance(odds) { set.with(*fault) } else { set })
    }
}

impl fmt::Debug for FaultSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for FaultSet {
    /// The words, with commas; `none`, `all`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if Fault::ALL.iter().all(|fault| self.has(*fault)) {
            return f.write_str("all");
        }
        let words: Vec<_> = self.kinds().map(Fault::as_str).collect();
        f.write_str(if words.is_empty() { "none".to_owned() } else { words.join(",") }.as_str())
    }
}

impl FromStr for FaultSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => return Ok(Self::ALL),
            "none" => return Ok(Self::NONE),
            _ => {}
        }
        let mut set = Self::NONE;
        for word in text.split(',') {
            let fault = Fault::ALL.iter().find(|fault| fault.as_str() == word);
            let Some(fault) = fault else {
                return Err(format!("unknown fault {word:?}; known are {}", Self::ALL.words()));
            };
            set = set.with(*fault);
        }
        Ok(set)
    }
}

impl FaultSet {
    fn words(self) -> String {
        self.kinds().map(Fault::as_str).collect::<Vec<_>>().join(", ")
    }
}

/// How often the faults of single messages and steps strike, in a million; 0 for kinds that are not in the mix.
#[derive(Clone, Debug, Default)]
pub(super) struct Rates {
    pub(super) request_lost: u64,
    pub(super) reply_lost: u64,
    pub(super) delay: u64,
    pub(super) duplicate: u64,
    pub(super) hint_lost: u64,
    pub(super) crash_at_step: u64,
    pub(super) no_start: u64,
    /// How long a delayed message takes at the most.
    pub(super) longest_delay: Duration,
}

impl Rates {
    pub(super) fn drawn(mix: FaultSet, dice: &mut Dice, lease_ttl: Duration) -> Self {
        let mut rate = |fault, of: &[u64]| {
            let drawn = dice.pick(of, 0);
            if mix.has(fault) { drawn } else { 0 }
        };
        Self {
            request_lost: rate(Fault::RequestLost, &[5_000, 50_000, 300_000]),
            reply_lost: rate(Fault::ReplyLost, &[5_000, 50_000, 300_000]),
            delay: rate(Fault::Delay, &[10_000, 100_000, 400_000]),
            duplicate: rate(Fault::Duplicate, &[10_000, 100_000, 300_000]),
            hint_lost: rate(Fault::HintLost, &[50_000, 300_000, 1_000_000]),
            crash_at_step: rate(Fault::CrashAtStep, &[2_000, 10_000, 50_000]),
            no_start: rate(Fault::NoStart, &[20_000, 200_000]),
            longest_delay: lease_ttl.mul_f64(dice.pick(&[0.2, 1.0, 3.0], 1.0)),
        }
    }
}
