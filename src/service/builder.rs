//! What a [`Guard`] is made with. Judges names and limits; asks no store. [`Guard::connect`] opens one.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::drive::{Entropy, Patience, Wait};
use crate::job::{Concurrency, JobName, JobSpec, MAX_ATTEMPTS_LIMIT, NameError, NodeName, OnLost, Policy, Program};
use crate::observe::{LogObserver, Observer};
use crate::schedule::{ScheduleError, Timetable};
use crate::service::Guard;
use crate::service::look_back::Newest;
use crate::service::shutdown::Shutdown;
use crate::slot::Period;
use crate::store::{self, OpenError, Store, StoreOptions};
use crate::zone::{Zone, ZoneError};

/// The bounds of `jobs.toml`: a shorter lease lapses between two renewals, a longer one keeps others out for a day.
const LEASE_TTL: RangeInclusive<Duration> = Duration::from_millis(500)..=Duration::from_secs(86_400);

/// How long a store that does not answer is asked before anything was started.
const STORE_WAIT: Duration = Duration::from_secs(2);

/// Why there is no guard.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The job's or the node's name is not allowed.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The time zone is unknown.
    #[error(transparent)]
    Timezone(#[from] ZoneError),
    /// The schedule or the period makes no slots.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// Slots of ticks need the schedule that ticks.
    #[error("slots of job {job} span a tick each, and there is no schedule: give one with GuardBuilder::schedule")]
    NoSchedule {
        /// The job.
        job: JobName,
    },
    /// A limit is out of its bounds.
    #[error("{what} is out of its bounds: {bounds}")]
    Limit {
        /// Which.
        what: &'static str,
        /// What is allowed.
        bounds: &'static str,
    },
    /// After a crash the lease would block the slots that follow.
    #[error(
        "lease_ttl of {lease_ttl:?} is longer than the slot of {slot:?}: after a crash the lease would block the slots that follow; \
         leave it out, or allow slots of the job to overlap with GuardBuilder::concurrency"
    )]
    LeaseOutlastsSlot {
        /// As it was set.
        lease_ttl: Duration,
        /// The shortest slot of the job.
        slot: Duration,
    },
    /// The system has no random source, so no token can be made.
    #[error("no random source: {0}")]
    Random(#[source] std::io::Error),
    /// The store cannot be opened; only from [`Guard::connect`].
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Makes a [`Guard`]. What is not set is as in `jobs.toml`, but for the timeout: there is none.
#[derive(Debug)]
#[must_use]
pub struct GuardBuilder {
    store: Arc<dyn Store>,
    job: String,
    node: String,
    schedule: Option<String>,
    timezone: Result<Zone, ZoneError>,
    period: Period,
    policy: Policy,
    lease_ttl: Option<Duration>,
    retry_delay: Option<Duration>,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn Observer>,
    wait: Duration,
    store_wait: Duration,
}

impl Guard {
    /// A guard for the job of this name on the store at this url, in a process that goes by its host's name, and for the rest as
    /// a [`GuardBuilder`] makes it: slots of an hour in UTC, three attempts, a lease of a minute. While the slot lasts it waits to take
    /// over from a process that fails or dies. A server that is away now is found out by [`Guard::run`]; a file is opened here.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cronward::Guard;
    ///
    /// let guard = Guard::connect("memory:", "hourly-push").await?;
    /// let outcome = guard.run_current(|_hold| async { Ok::<_, std::io::Error>("pushed") }).await?;
    /// assert_eq!(outcome.value(), Some("pushed"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`BuildError::Open`] where the url cannot be used, [`BuildError::Name`] where the job's name cannot.
    pub async fn connect(url: &str, job: impl Into<String>) -> Result<Self, BuildError> {
        let store = store::open(url, StoreOptions::default()).await?;
        Self::builder(store, job, host_name().as_str()).build()
    }

    /// A guard for the job of this name, in a process of this name, on an open store. Names are judged by
    /// [`GuardBuilder::build`]; give each process a name of its own, people read it.
    pub fn builder(store: Arc<dyn Store>, job: impl Into<String>, node: impl Into<String>) -> GuardBuilder {
        GuardBuilder::new(store, job.into(), node.into())
    }
}

impl GuardBuilder {
    fn new(store: Arc<dyn Store>, job: String, node: String) -> Self {
        Self {
            store,
            job,
            node,
            schedule: None,
            timezone: Ok(Zone::UTC),
            period: Period::Hour,
            policy: Policy { timeout: None, ..Policy::default() },
            lease_ttl: None,
            retry_delay: None,
            clock: Arc::new(SystemClock),
            observer: Arc::new(LogObserver),
            wait: Duration::MAX,
            store_wait: STORE_WAIT,
        }
    }

    /// What one slot spans; an hour if not set. [`Period::Tick`] needs a schedule.
    pub const fn period(mut self, period: Period) -> Self {
        self.period = period;
        self
    }

    /// The zone in which hours and days begin: a [`Zone`], or the name of one in the time zone database of the host, which
    /// [`GuardBuilder::build`] refuses if there is none. UTC if not set. The guard keeps the rules that the zone has now.
    pub fn timezone<Z>(mut self, zone: Z) -> Self
    where
        Z: TryInto<Zone>,
        Z::Error: Into<ZoneError>,
    {
        self.timezone = zone.try_into().map_err(Into::into);
        self
    }

    /// The cron expression that the service itself keeps. It starts nothing here: it tells where slots of ticks begin, and
    /// which older slots there were.
    pub fn schedule(mut self, expression: impl Into<String>) -> Self {
        self.schedule = Some(expression.into());
        self
    }

    /// How long a lease lasts unless renewed, 500 ms to a day, and no longer than a slot; if not set 60 s, and at most a third of the
    /// shortest slot. When this process dies, another one takes over after it.
    pub const fn lease_ttl(mut self, ttl: Duration) -> Self {
        self.lease_ttl = Some(ttl);
        self
    }

    /// How long the done marker lasts, and at least until the slot's end; 2 h if not set.
    pub const fn done_ttl(mut self, ttl: Duration) -> Self {
        self.policy.done_ttl = ttl;
        self
    }

    /// Attempts in all, over all processes, 1 to 999; 3 if not set.
    pub const fn max_attempts(mut self, most: u32) -> Self {
        self.policy.max_attempts = most;
        self
    }

    /// The wait that everybody keeps after a failure; if not set 10 s, and at most a sixth of the shortest slot.
    pub const fn retry_delay(mut self, delay: Duration) -> Self {
        self.retry_delay = Some(delay);
        self
    }

    /// How long an attempt may last; without bound if not set. Then the work is asked to end, and dropped after
    /// [`GuardBuilder::kill_after`].
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.policy.timeout = Some(timeout);
        self
    }

    /// From asking the work to end ([`crate::service::Hold::cancelled`]) to dropping it; 10 s if not set.
    pub const fn kill_after(mut self, span: Duration) -> Self {
        self.policy.kill_after = span;
        self
    }

    /// What becomes of the work when its lease is lost or in doubt; it goes on if not set.
    pub const fn on_lost(mut self, what: OnLost) -> Self {
        self.policy.on_lost = what;
        self
    }

    /// Against a run of another slot of the job; it waits for that if not set. `Replace` is what a daemon does; here it is
    /// as `Forbid`.
    pub const fn concurrency(mut self, what: Concurrency) -> Self {
        self.policy.concurrency = what;
        self
    }

    /// How long [`Guard::run`] waits for a slot that another process holds, to take it over should that process fail or die, and for
    /// another attempt after a failure. As long as the slot lasts if not set, as the daemon does.
    pub const fn wait(mut self, span: Duration) -> Self {
        self.wait = span;
        self
    }

    /// One look and at most one attempt for each call of [`Guard::run`]: a slot that another process holds is
    /// [`Skipped::Held`](crate::service::Skipped::Held) at once. When that process dies, or an attempt fails, only a later call tries again.
    pub const fn try_once(self) -> Self {
        self.wait(Duration::ZERO)
    }

    /// How long a store that does not answer is asked before [`Guard::run`] gives up, nothing started; 2 s if not set.
    pub const fn store_wait(mut self, span: Duration) -> Self {
        self.store_wait = span;
        self
    }

    /// Where time is read; the machine's clocks if not set. For tests.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Who hears of every event; the `tracing` log if not set.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }

    /// The guard.
    ///
    /// # Errors
    /// [`BuildError`] names what cannot be used.
    pub fn build(self) -> Result<Guard, BuildError> {
        let job = JobName::new(&self.job)?;
        let node = NodeName::new(&self.node)?;
        self.limits()?;
        let schedule = match (&self.schedule, self.period) {
            (Some(schedule), _) => schedule.clone(),
            (None, Period::Tick) => return Err(BuildError::NoSchedule { job }),
            (None, period) => begins(period).to_owned(),
        };
        let mut spec = JobSpec {
            timezone: self.timezone.clone()?,
            period: self.period,
            policy: self.policy.clone(),
            ..JobSpec::new(job, schedule, Program::Direct(Vec::new()))
        };
        let timetable = Timetable::of(&spec)?;
        self.pace(&mut spec.policy, timetable.shortest_slot())?;
        let entropy = Entropy::from_system().map_err(BuildError::Random)?;
        let wait = if self.wait.is_zero() { Wait::No } else { Wait::For(self.wait) };
        let patience = Patience { wait, store: self.store_wait, record: None, drain: Duration::ZERO };
        let shutdown = Shutdown::default();
        let (newest, is_scheduled) = (Newest::default(), self.schedule.is_some());
        let Self { store, clock, observer, .. } = self;
        Ok(Guard { store, clock, observer, entropy, node, spec, timetable, patience, shutdown, newest, is_scheduled })
    }

    /// The lease and the wait after a failure, by the length of the shortest slot.
    fn pace(&self, policy: &mut Policy, slot: Duration) -> Result<(), BuildError> {
        policy.lease_ttl = self.lease_ttl.unwrap_or_else(|| Policy::default_lease_ttl(slot));
        policy.retry.delay = self.retry_delay.unwrap_or_else(|| Policy::default_retry_delay(slot));
        if policy.lease_ttl > slot && policy.concurrency.is_exclusive() {
            return Err(BuildError::LeaseOutlastsSlot { lease_ttl: policy.lease_ttl, slot });
        }
        Ok(())
    }

    fn limits(&self) -> Result<(), BuildError> {
        let policy = &self.policy;
        let bounds = |held: bool, what, bounds| if held { Ok(()) } else { Err(BuildError::Limit { what, bounds }) };
        bounds(self.lease_ttl.is_none_or(|ttl| LEASE_TTL.contains(&ttl)), "lease_ttl", "500 ms to a day")?;
        bounds((1..=MAX_ATTEMPTS_LIMIT).contains(&policy.max_attempts), "max_attempts", "1 to 999")?;
        bounds(policy.timeout != Some(Duration::ZERO), "timeout", "more than nothing")
    }
}

/// The machine's name. It may have characters that a node's name cannot.
fn host_name() -> NodeName {
    let machine = rustix::system::uname();
    match machine.nodename().to_string_lossy() {
        name if name.is_empty() => NodeName::nearest("local"),
        name => NodeName::nearest(&name),
    }
}

/// One tick at the start of each slot: what is known of a schedule that was not told.
const fn begins(period: Period) -> &'static str {
    match period {
        Period::Minute => "* * * * *",
        Period::Day => "0 0 * * *",
        Period::Fixed(_) => "* * * * * *",
        Period::Hour | Period::Tick => "0 * * * *",
    }
}
