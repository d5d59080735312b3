//! What a seed draws: nodes and their files, jobs with their rhythm, their policies and how their commands behave, how slow the
//! network is, which faults there are. Limits cut a scenario down without changing what is left of it.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use cronward::clock::earlier;
use cronward::job::{
    Backoff, Concurrency, JobName, JobSpec, NodeName, OnLost, OnStoreError, Policy, Program, RetryPolicy,
};
use cronward::schedule::{ScheduleError, Timetable};
use cronward::slot::Period;
use cronward::zone::Zone;

use crate::engine::{self, Dice, Time};
use crate::faults::{Fault, FaultSet, Rates};
use crate::lock_mix;

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
    /// The last of the jobs is in no file before this.
    pub(super) added: Option<Time>,
    /// Faults strike before this.
    pub(super) faults_until: Time,
    /// The end of the world.
    pub(super) end: Time,
}

impl Scenario {
    /// The scenario of a seed.
    pub(super) fn drawn(seed: u64, limits: Limits) -> Result<Self, ScheduleError> {
        let mut dice = Dice::new(seed, 1);
        let (rhythm, epoch) = Rhythm::drawn(seed, &mut dice);
        let mix = FaultSet::drawn(seed).and(limits.faults);
        let count = |most: u64, limit: usize, dice: &mut Dice| {
            usize::try_from(1 + dice.below(most)).unwrap_or(1).min(limit.max(1))
        };
        let nodes = count(4, limits.nodes, &mut dice);
        let job_count = count(3, limits.jobs, &mut dice);
        let periods = u32::try_from(dice.below(24)).unwrap_or(0) + 6;
        let network = network(&mut dice);
        let mut jobs = Vec::new();
        for name in ["a", "b", "c"].into_iter().take(job_count) {
            jobs.extend(job(name, &rhythm, &network, &mut Dice::new(seed, 10 + jobs.len() as u64))?);
        }
        for (job, locks) in jobs.iter_mut().zip(lock_mix::drawn(seed, rhythm.period)) {
            let policy = &mut Arc::make_mut(&mut job.spec).policy;
            if let Some((demands, wait)) = locks {
                (policy.locks, policy.lock_wait) = (Some(demands), wait);
                // The two do not go together: a run without a guard would be one without its locks.
                policy.on_store_error = OnStoreError::Skip;
            }
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
            added: added(seed, faults_until),
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

    /// Its commands write output.
    pub(super) const fn has_outputs(&self) -> bool {
        self.mix.has(Fault::ContentRefused)
    }

    /// Some job names locks.
    pub(super) fn has_locks(&self) -> bool {
        self.jobs.iter().any(|job| job.spec.policy.locks.is_some())
    }

    /// Whether the files have the job by then.
    pub(super) fn has_by(&self, name: &JobName, now: Time) -> bool {
        let is_last = self.jobs.last().is_some_and(|job| job.spec.name == *name);
        !is_last || self.added.is_none_or(|added| added <= now)
    }

    pub(super) fn job(&self, name: &JobName) -> Option<(usize, &SimJob)> {
        self.jobs.iter().enumerate().find(|(_, job)| job.spec.name == *name)
    }

    /// The clocks of its time zone change while it lasts.
    pub(super) fn changes_offset(&self) -> bool {
        let zone = self.jobs.first().map_or(Zone::UTC, |job| job.spec.timezone.clone());
        let offset = |at: DateTime<Utc>| *zone.local(at).offset();
        offset(self.epoch) != offset(self.instant(self.end))
    }

    /// The true instant of a time of the world.
    pub(super) fn instant(&self, at: Time) -> DateTime<Utc> {
        engine::instant(self.epoch, at)
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

/// What the slots of a world are like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rhythm {
    pub(super) span: Period,
    pub(super) schedules: &'static [&'static str],
    /// The usual length of a slot.
    pub(super) period: Duration,
    pub(super) zone: &'static str,
    /// Slots are shorter than what strikes them.
    pub(super) short: bool,
}

/// The first seed whose world may be one of short slots; see [`is_short`].
pub const SHORT_FROM: u64 = 10_000_000;

/// From this seed on a job is added to the files of half of the worlds while the others run, by a stream of its own.
pub const ADDED_FROM: u64 = 2_500_000_000_000;

fn added(seed: u64, before: Time) -> Option<Time> {
    let mut dice = Dice::new(seed, 20);
    (seed >= ADDED_FROM && dice.below(2) == 0).then(|| dice.span(Duration::ZERO, before))
}

/// Of the seeds from [`SHORT_FROM`] on one world in three has slots that are shorter than its outages. Those before it were
/// tried, and kept, before there were any: their worlds stay what they were, for the draw is a stream of its own.
pub fn is_short(seed: u64) -> bool {
    seed >= SHORT_FROM && Dice::new(seed, 7).below(3) == 0
}

/// Each tick begins a slot of one to five seconds. What a job's policy takes from the length of a slot is the same for all.
const SHORT: [&str; 5] = ["* * * * * *", "*/2 * * * * *", "*/3 * * * * *", "*/4 * * * * *", "*/5 * * * * *"];
const SHORT_PERIOD: Duration = Duration::from_secs(5);
/// Leases of short slots outlast them; the last is about what an hour's job has.
const SHORT_LEASES: [Duration; 3] = [Duration::from_secs(8), Duration::from_secs(20), Duration::from_secs(57)];

const RHYTHMS: [(Period, &[&str], u64); 7] = [
    (Period::Fixed(Duration::from_secs(20)), &["*/20 * * * * *", "*/10 * * * * *", "7,27,47 * * * * *"], 20),
    (Period::Fixed(Duration::from_secs(30)), &["*/30 * * * * *", "10,40,50 * * * * *"], 30),
    (Period::Minute, &["* * * * *", "20 * * * * *", "*/30 * * * * *"], 60),
    (Period::Tick, &["*/15 * * * * *", "0,20,50 * * * * *", "*/30 * * * * *"], 20),
    (Period::Tick, &["* * * * *", "0 */2 * * * *"], 60),
    (Period::Hour, &["0 * * * *", "*/20 * * * *", "10 * * * *", "30 1-3 * * *", "0 0,12 * * *"], 3_600),
    (Period::Day, &["0 3 * * *", "30 1,2 * * *", "0 */8 * * *", "0 0 * * *", "45 23 * * *"], 86_400),
];

/// Where most worlds begin: no clock changes there.
const PLAIN: &str = "2026-11-21T09:00:00Z";

const ZONES: [&str; 5] = ["UTC", "Europe/Berlin", "Europe/London", "America/New_York", "Australia/Lord_Howe"];

/// When the clocks of a zone change; on Lord Howe by half an hour.
const CHANGES: [(&str, &str); 8] = [
    ("2026-03-29T01:00:00Z", "Europe/Berlin"),
    ("2026-10-25T01:00:00Z", "Europe/Berlin"),
    ("2026-03-29T01:00:00Z", "Europe/London"),
    ("2026-10-25T01:00:00Z", "Europe/London"),
    ("2026-03-08T07:00:00Z", "America/New_York"),
    ("2026-11-01T06:00:00Z", "America/New_York"),
    ("2026-04-04T15:00:00Z", "Australia/Lord_Howe"),
    ("2026-10-03T15:30:00Z", "Australia/Lord_Howe"),
];

impl Rhythm {
    /// The rhythm, and when the world begins: one in eight begins before a change of the clock, with hours and days all do.
    pub(super) fn drawn(seed: u64, dice: &mut Dice) -> (Self, DateTime<Utc>) {
        let (rhythm, epoch) = Self::usual(seed, dice);
        if !is_short(seed) {
            return (rhythm, epoch);
        }
        let (span, period) = (Period::Tick, SHORT_PERIOD);
        (Self { span, schedules: &SHORT, period, short: true, ..rhythm }, epoch)
    }

    fn usual(seed: u64, dice: &mut Dice) -> (Self, DateTime<Utc>) {
        let mut calendar = Dice::new(seed, 6);
        // Hours take ten times as long to simulate, days a hundred times: one world in 48, and one in 960.
        let long = if calendar.below(20) == 0 { 6 } else { 5 };
        let index = if dice.below(48) == 2 { long } else { usize::try_from(dice.below(5)).unwrap_or(0) };
        let (span, schedules, seconds) = RHYTHMS.get(index).copied().unwrap_or(RHYTHMS[0]);
        let (period, zone) = (Duration::from_secs(seconds), dice.pick(&ZONES, "UTC"));
        let plain = instant(PLAIN) + TimeDelta::milliseconds(i64::try_from(dice.below(7_200_000)).unwrap_or(0));
        let rhythm = Self { span, schedules, period, zone, short: false };
        if index < 5 && calendar.below(8) > 0 {
            return (rhythm, plain);
        }
        let (change, zone) = calendar.pick(&CHANGES, (PLAIN, "UTC"));
        let before = calendar.span(Duration::ZERO, if index == 6 { period * 2 } else { period * 6 });
        (Self { zone, ..rhythm }, earlier(instant(change), before))
    }

    /// How long faults strike: for fewer days than hours, and in short slots twice as long, for leases are long there.
    pub(super) fn struck_for(&self, periods: u32) -> Duration {
        let most = if self.span == Period::Day { 2 } else { u32::MAX };
        self.period * periods.min(most) * if self.short { 2 } else { 1 }
    }

    /// Of which a job's lease is one.
    fn leases(&self) -> [Duration; 3] {
        if self.short { SHORT_LEASES } else { [self.period / 10, self.period / 6, self.period / 4] }
    }
}

fn instant(text: &str) -> DateTime<Utc> {
    text.parse().unwrap_or(DateTime::UNIX_EPOCH)
}

/// How the command of a job behaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habit {
    /// Runs that succeed, in a million.
    pub(super) success: u64,
    /// How long a run takes.
    pub(super) usual: (Duration, Duration),
    /// Runs that take up to `longest`, in a million.
    pub(super) long: u64,
    pub(super) longest: Duration,
    /// Runs that do not end before they are stopped, in a million.
    pub(super) hangs: u64,
    /// Runs that do not heed TERM, in a million.
    pub(super) stubborn: u64,
}

/// A job of this name.
fn job(name: &str, rhythm: &Rhythm, network: &Network, dice: &mut Dice) -> Result<Option<SimJob>, ScheduleError> {
    let Ok(name) = JobName::new(name) else { return Ok(None) };
    let schedule = dice.pick(rhythm.schedules, "* * * * *");
    let mut spec = JobSpec::new(name, schedule, Program::Direct(vec!["true".to_owned()]));
    spec.timezone = rhythm.zone.parse().unwrap_or_default();
    spec.period = rhythm.span;
    spec.policy = policy(rhythm, network, dice);
    spec.jitter = if dice.below(3) == 0 { rhythm.period / 20 } else { Duration::ZERO };
    let timetable = Timetable::of(&spec)?;
    let habit = habit(rhythm.period, &spec.policy, dice);
    Ok(Some(SimJob { spec: Arc::new(spec), timetable, habit }))
}

fn policy(rhythm: &Rhythm, network: &Network, dice: &mut Dice) -> Policy {
    let period = rhythm.period;
    let part = |of: u32| period / of;
    let lease_ttl = dice.pick(&rhythm.leases(), part(6)).max(network.timeout * 2).min(Duration::from_secs(60));
    let delay = dice.pick(&[Duration::ZERO, part(60), part(20), part(8)], Duration::ZERO);
    let backoff = dice.pick(&[Backoff::Fixed, Backoff::Exponential], Backoff::Fixed);
    let timeout = dice.pick(&[None, Some(part(4)), Some(part(2)), Some(part(1))], None);
    Policy {
        lease_ttl,
        done_ttl: dice.pick(&[Duration::from_secs(1), period * 2], period * 2),
        max_attempts: u32::try_from(1 + dice.below(4)).unwrap_or(1),
        retry: RetryPolicy { delay, backoff, max_delay: delay * 4 },
        timeout,
        kill_after: dice.pick(&[lease_ttl / 20, lease_ttl / 4, lease_ttl], lease_ttl / 4),
        on_lost: dice.pick(&[OnLost::Continue, OnLost::Kill], OnLost::Continue),
        on_store_error: dice.pick(&[OnStoreError::Skip, OnStoreError::Skip, OnStoreError::Run], OnStoreError::Skip),
        concurrency: dice.pick(&[Concurrency::Forbid, Concurrency::Allow, Concurrency::Replace], Concurrency::Forbid),
        start_deadline: if dice.below(8) == 0 { Some(part(3)) } else { None },
        locks: None,
        lock_wait: None,
    }
}

fn habit(period: Duration, policy: &Policy, dice: &mut Dice) -> Habit {
    let usual = dice.pick(&[period / 200, period / 20, period / 4], period / 20);
    Habit {
        success: dice.pick(&[1_000_000, 900_000, 500_000, 50_000], 900_000),
        usual: (usual / 10, usual),
        long: dice.pick(&[0, 50_000, 300_000], 0),
        longest: period + policy.lease_ttl * 2,
        // Without a timeout nothing would ever stop it.
        hangs: if policy.timeout.is_some() { dice.pick(&[0, 0, 30_000, 300_000], 0) } else { 0 },
        stubborn: dice.pick(&[0, 100_000, 1_000_000], 0),
    }
}
