//! What a seed draws: nodes and their files, jobs and how their commands behave, how slow the network is, which faults there
//! are. Limits cut a scenario down without changing what is left of it.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Offset, TimeDelta, Utc};
use chrono_tz::Tz;

use crate::job::{JobName, JobSpec, NodeName};
use crate::schedule::{ScheduleError, Timetable};
use crate::sim::dice::Dice;
use crate::sim::faults::{Fault, FaultSet, Rates};
use crate::sim::jobs::{self, Habit};
use crate::sim::time::Time;

/// What a world may have at the most; for a smaller world of the same seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Nodes.
    pub nodes: usize,
    /// Jobs.
    pub jobs: usize,
    /// Periods during which faults strike; as many as it takes to come to rest follow.
    pub periods: u32,
    /// Kinds of faults.
    pub faults: FaultSet,
}

impl Limits {
    /// As drawn.
    pub const NONE: Self = Self { nodes: usize::MAX, jobs: usize::MAX, periods: u32::MAX, faults: FaultSet::ALL };
}

/// One job and how its command behaves.
#[derive(Clone, Debug)]
pub(super) struct SimJob {
    pub(super) spec: Arc<JobSpec>,
    pub(super) timetable: Timetable,
    pub(super) habit: Habit,
}

/// Times of messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network {
    /// The shortest way in one direction.
    pub(super) least: Duration,
    /// The longest, unless a fault delays it.
    pub(super) most: Duration,
    /// After this a call is given up.
    pub(super) timeout: Duration,
}

/// Everything about a world that is drawn before it begins.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) seed: u64,
    pub(super) mix: FaultSet,
    pub(super) rates: Rates,
    pub(super) jobs: Vec<SimJob>,
    pub(super) nodes: Vec<NodeName>,
    pub(super) network: Network,
    /// How often waiting nodes look where the store does not push.
    pub(super) poll: Option<Duration>,
    pub(super) heartbeat: Duration,
    pub(super) beat: Duration,
    pub(super) epoch: DateTime<Utc>,
    /// The longest `lease_ttl` of any job.
    pub(super) lease_ttl: Duration,
    /// The usual length of a slot.
    pub(super) period: Duration,
    /// Slots are shorter than what strikes them.
    pub(super) short: bool,
    /// Faults strike before this.
    pub(super) faults_until: Time,
    /// The end of the world.
    pub(super) end: Time,
}

impl Scenario {
    /// The scenario of a seed.
    pub(super) fn drawn(seed: u64, limits: Limits) -> Result<Self, ScheduleError> {
        let mut dice = Dice::new(seed, 1);
        let (rhythm, epoch) = jobs::Rhythm::drawn(seed, &mut dice);
        let mix = FaultSet::drawn(&mut Dice::new(seed, 2)).and(limits.faults);
        let count = |most: u64, limit: usize, dice: &mut Dice| {
            usize::try_from(1 + dice.below(most)).unwrap_or(1).min(limit.max(1))
        };
        let nodes = count(4, limits.nodes, &mut dice);
        let job_count = count(3, limits.jobs, &mut dice);
        let periods = u32::try_from(dice.below(24)).unwrap_or(0) + 6;
        let network = network(&mut dice);
        let mut jobs = Vec::new();
        for name in ["a", "b", "c"].into_iter().take(job_count) {
            jobs.extend(jobs::drawn(name, &rhythm, &network, &mut Dice::new(seed, 10 + jobs.len() as u64))?);
        }
        let lease_ttl = jobs.iter().map(|job| job.spec.policy.lease_ttl).max().unwrap_or_default();
        let rates = Rates::drawn(mix, &mut Dice::new(seed, 3), lease_ttl);
        let poll = (dice.below(3) == 0).then(|| lease_ttl / 8);
        let faults_until = rhythm.struck_for(periods.min(limits.periods));
        // Long runs and the longest wait of a closer are over, then some slots without any fault.
        let rest = jobs.iter().map(SimJob::longest).max().unwrap_or_default() + lease_ttl * 2;
        let end = faults_until + rest + rhythm.period * 3 + Duration::from_secs(75);
        Ok(Self {
            seed,
            mix,
            rates,
            jobs,
            nodes: ["n1", "n2", "n3", "n4"].iter().take(nodes).filter_map(|name| NodeName::new(name).ok()).collect(),
            network,
            poll,
            heartbeat: if rhythm.period > Duration::from_secs(600) {
                Duration::from_secs(60)
            } else {
                Duration::from_secs(10)
            },
            beat: if rhythm.period > Duration::from_secs(600) {
                // A longer one is a jump of time.
                Duration::from_millis(2_900)
            } else {
                Duration::from_secs(1)
            },
            epoch,
            lease_ttl,
            period: rhythm.period,
            short: rhythm.short,
            faults_until,
            end,
        })
    }

    /// Whether the checker of journals can read its clocks: it sets that of a node right once for each start, as is enough
    /// where a time server is. One that is stepped meanwhile, or has drifted for hours, is not put right by that.
    pub(super) fn has_steady_clocks(&self) -> bool {
        let unsteady = [Fault::ClockJump, Fault::ClockDrift].iter().any(|fault| self.mix.has(*fault));
        !unsteady && self.period <= Duration::from_secs(600)
    }

    pub(super) fn job(&self, name: &JobName) -> Option<(usize, &SimJob)> {
        self.jobs.iter().enumerate().find(|(_, job)| job.spec.name == *name)
    }

    /// The clocks of its time zone change while it lasts.
    pub(super) fn changes_offset(&self) -> bool {
        let zone = self.jobs.first().map_or(Tz::UTC, |job| job.spec.timezone);
        let offset = |at: DateTime<Utc>| at.with_timezone(&zone).offset().fix();
        offset(self.epoch) != offset(self.instant(self.end))
    }

    /// The true instant of a time of the world.
    pub(super) fn instant(&self, at: Time) -> DateTime<Utc> {
        crate::sim::time::instant(self.epoch, at)
    }

    /// The world's time at a true instant; its beginning for earlier ones.
    pub(super) fn time(&self, at: DateTime<Utc>) -> Time {
        (at - self.epoch).max(TimeDelta::zero()).to_std().unwrap_or_default()
    }
}

impl SimJob {
    /// How long a run of it may go on.
    fn longest(&self) -> Duration {
        let policy = &self.spec.policy;
        policy.timeout.map_or(self.habit.longest, |timeout| timeout.min(self.habit.longest)) + policy.kill_after
    }
}

fn network(dice: &mut Dice) -> Network {
    let ms = Duration::from_millis;
    let (least, most) = dice.pick(&[(1, 2), (1, 10), (5, 40), (20, 45)], (1, 2));
    Network { least: ms(least), most: ms(most), timeout: ms(dice.pick(&[500, 1_000, 2_000], 1_000)) }
}
