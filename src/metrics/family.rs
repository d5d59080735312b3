//! The table of the metrics: each name once, with its kind, its labels and its help. `docs/metrics.md` has the same, and a test
//! compares the two.

/// What kind of number it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FamilyKind {
    /// Rises, from 0 at the start of the process.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How many were at most so large, with their sum.
    Histogram,
}

impl FamilyKind {
    /// The word of the text format.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One name and everything that is told under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// Its kind.
    pub kind: FamilyKind,
    /// Its labels besides `namespace`, which all have whose names begin with `cronward_`.
    pub labels: &'static [&'static str],
    /// What it is, in one line.
    pub help: &'static str,
}

/// What the names begin with, but for those that every program has.
pub(super) const PREFIX: &str = "cronward_";

macro_rules! families {
    ($($place:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(pub(super) const $place: Family =
            Family { name: $name, kind: FamilyKind::$kind, labels: &[$($label),*], help: $help };)*

        /// Every family, in the order in which it is told.
        pub const FAMILIES: &[Family] = &[$($place),*];
    };
}

families! {
    RUNS = Counter "cronward_runs_total" ["job_name", "result"] "Runs of commands that ended on this node, by their result.";
    SLOTS = Counter "cronward_slots_total" ["job_name", "verdict"] "Slots that this node recorded as done, failed, missed or skipped.";
    OVERLAPS = Counter "cronward_overlaps_total" ["job_name"] "Runs of this node that lost their lease or were overtaken: another run may have overlapped.";
    RUN_DURATION = Histogram "cronward_run_duration_seconds" ["job_name"] "How long runs took; from the first run of a job on this node on.";
    START_DELAY = Histogram "cronward_start_delay_seconds" [] "From a slot's tick to the start of its first attempt.";
    CLAIMS = Counter "cronward_claims_total" ["result"] "Answers of the store to claims.";
    RENEWALS = Counter "cronward_renewals_total" ["result"] "Answers of the store to renewals of leases.";
    LOCK_WAITING = Gauge "cronward_lock_waiting_runs" [] "Attempts of this node that wait for the locks of their jobs.";
    LOCK_WAITS = Histogram "cronward_lock_wait_seconds" [] "How long attempts waited for the locks of their jobs until they held them.";
    LOCK_HOLDS = Histogram "cronward_lock_held_seconds" [] "How long attempts held the locks of their jobs.";
    LOCKS_LOST = Counter "cronward_locks_lost_total" ["job_name"] "Runs of this node that lost their locks, or whose locks were overtaken, of jobs that name locks.";
    JOB_INFO = Gauge "cronward_job_info" ["job_name", "schedule", "timezone", "period", "owner", "origin"] "1; what the job is.";
    JOB_RUNNING = Gauge "cronward_job_running" ["job_name"] "Runs of the job on this node now.";
    JOB_ATTEMPTS = Gauge "cronward_job_attempts" ["job_name"] "The largest number of an attempt that this node made in the job's newest slot; 0 once that is over.";
    JOB_PAUSED = Gauge "cronward_job_paused" ["job_name"] "1 while the job is paused.";
    JOB_NEXT_TICK = Gauge "cronward_job_next_tick_timestamp_seconds" ["job_name"] "When the schedule fires next.";
    JOB_LAST_SUCCESS = Gauge "cronward_job_last_success_timestamp_seconds" ["job_name"] "When the newest slot that is done was done, by the store's clock; no series where none is.";
    JOB_FAILING_SINCE = Gauge "cronward_job_failing_since_timestamp_seconds" ["job_name"] "Start of the oldest slot that failed or was missed since the newest that is done; 0 where none did.";
    JOB_ALERT_AFTER = Gauge "cronward_job_alert_after_seconds" ["job_name"] "The job's alert_after, where it has one.";
    JOB_TIMEOUT = Gauge "cronward_job_timeout_seconds" ["job_name"] "The job's timeout, where it has one.";
    STORE_OPS = Histogram "cronward_store_op_duration_seconds" ["op"] "How long the store took to answer, or to fail; from the first call of an operation on.";
    STORE_ERRORS = Counter "cronward_store_errors_total" ["op", "kind"] "Calls that the store did not answer; from the first error of a kind on.";
    STORE_UP = Gauge "cronward_store_up" [] "1 while the last heartbeat reached the store.";
    STORE_DATA_LOSSES = Counter "cronward_store_data_losses_total" [] "Times that the store no longer had what it had acknowledged to this node.";
    CLOCK_OFFSET = Gauge "cronward_clock_offset_seconds" [] "The node's clock minus the store's.";
    PLANNER_BEAT = Gauge "cronward_planner_beat_timestamp_seconds" [] "When the planner beat last; it beats each second.";
    NODES = Gauge "cronward_nodes" ["state"] "Nodes that the store knows of; no series while it cannot be asked.";
    DRAINING = Gauge "cronward_draining" [] "1 from the shutdown on.";
    CONFIG_INFO = Gauge "cronward_config_info" ["config_hash"] "1; the hash over the jobs in force.";
    TIME_ZONES_INFO = Gauge "cronward_time_zones_info" ["release", "folder"] "1; the time zone database of the node; no series where every job is in UTC.";
    RELOAD_SUCCESSFUL = Gauge "cronward_config_last_reload_successful" [] "1 unless the last reload was refused.";
    RELOAD_SUCCESS_AT = Gauge "cronward_config_last_reload_success_timestamp_seconds" [] "When the jobs in force were taken.";
    BUILD_INFO = Gauge "cronward_build_info" ["version", "revision"] "1; which build of cronward it is.";
    JOURNAL_LOST = Counter "cronward_journal_lines_lost_total" [] "Lines of the journal that were never written.";
    NOTES_REFUSED = Gauge "cronward_notes_refused" [] "1 once the store has refused what cronward why is to show.";
    NOTIFICATIONS = Counter "cronward_notifications_total" ["sink", "result"] "Messages of this node that were sent, are to be tried again, were given up, or dropped.";
    NOTIFICATIONS_PENDING = Gauge "cronward_notifications_oldest_pending_seconds" ["sink"] "How long the oldest message that this node knows of has not been told; 0 while there is none.";
    PROCESS_MEMORY = Gauge "process_resident_memory_bytes" [] "Resident memory of the daemon.";
    PROCESS_CPU = Counter "process_cpu_seconds_total" [] "Processor time of the daemon, of the user and of the system.";
    PROCESS_FDS = Gauge "process_open_fds" [] "Open file descriptors of the daemon.";
    PROCESS_START = Gauge "process_start_time_seconds" [] "When the daemon started.";
}
