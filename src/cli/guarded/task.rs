//! The command line of `cronward exec`, and what is to be guarded by it: the job with its limits, and the slot.

use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::ValueEnum;

use crate::cli::failure::Failure;
use crate::cli::guarded::slot_arg::SlotArg;
use crate::cli::guarded::told::NAMES;
use crate::cli::store_args::StoreArgs;
use crate::cli::value_parsers;
use crate::config::{Config, format_duration};
use crate::drive::{Introduction, Wait};
use crate::job::{
    JobName, JobSpec, KillMode, LockKey, MAX_ATTEMPTS_LIMIT, NodeName, OnLost, OnStoreError, Policy, Program,
    RetryPolicy, hash,
};
use crate::resource::{Demand, Demands};
use crate::schedule::Timetable;
use crate::slot::{Period, Slot};
use crate::store::{CrontabCommand, JobEntry, JobOrigin};
use crate::zone::Zone;

/// Guard one command: of all the machines that start it, one runs it in each slot
///
/// Put `cronward exec` in front of the command in every machine's crontab. One machine runs the command and exits with the
/// command's exit code. The others wait until the slot is done, and then exit with 0 and print nothing. If the machine that runs
/// the command fails or dies, a waiting machine takes over. If the slot ends, or its attempts are exhausted, without a success, the
/// machines that waited print one line to stderr and exit with 69. If the slot is skipped, because the job is
/// paused, another slot of the job still runs or its locks are held, exec prints one line to stderr. A job of that name in the file provides the
/// defaults of the limits; flags override them.
///
/// Stdin, stdout and stderr are passed to and from the command through pipes, byte for byte. A terminal is not passed as
/// stdin: the command runs in the background and would be stopped when it reads. Ctrl-Z is ignored, because a stopped guard
/// cannot renew its lease.
///
/// Inside a run of the same job and slot, exec starts its command at once under the lease of that run. The limits of that run
/// apply: of exec's own flags only --timeout and --report have an effect; --key must be the key of that run, and --lock one of its
/// locks.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Example: cronward exec --store redis://127.0.0.1/ --job billing -- /usr/local/bin/bill --all",
    after_help = "Exit codes: the command's own, or 128 + the signal that ended it; 64 usage, 69 store refuses or the slot was not done, 74 output lost, 75 store unavailable, \
                  76 lease lost and the command killed, 78 configuration, 124 timeout, 126 cannot run, 127 not found."
)]
pub(crate) struct ExecArgs {
    /// The job's name: the same on every machine
    #[arg(long, value_name = "JOB")]
    pub(crate) job: JobName,
    /// The length of a slot: hour, minute, day, or a duration that divides a day, like 15m; or one slot by its start, like
    /// 2026-11-21T14Z [default: the file's, or hour]
    #[arg(long, value_name = "SLOT")]
    pub(crate) slot: Option<SlotArg>,
    /// The time zone in which slots begin: without it, the days of `--slot day` are days in UTC [default: the file's, or UTC]
    #[arg(long, value_name = "ZONE", value_parser = value_parsers::zone)]
    pub(crate) timezone: Option<Zone>,
    /// Total attempts over all machines [default: the file's, or 3]
    #[arg(long, value_name = "N", value_parser = value_parsers::number(1..=MAX_ATTEMPTS_LIMIT))]
    pub(crate) max_attempts: Option<u32>,
    /// How long a lease lasts without renewal, 500ms to 1d [default: the file's, or a third of the slot, at most 60s]
    #[arg(long, value_name = "DURATION", value_parser = value_parsers::lease_ttl)]
    pub(crate) lease_ttl: Option<Duration>,
    /// How long the done marker lasts, at least until the slot's end [default: the file's, or 2h]
    #[arg(long, value_name = "DURATION", value_parser = value_parsers::span)]
    pub(crate) done_ttl: Option<Duration>,
    /// Stop the command after this time [default: the file's, or never]
    #[arg(long, value_name = "DURATION", value_parser = value_parsers::span)]
    pub(crate) timeout: Option<Duration>,
    /// Wait this long between a failure and the next attempt [default: none, the crontab decides]
    #[arg(long, value_name = "DURATION", value_parser = value_parsers::span)]
    pub(crate) retry_delay: Option<Duration>,
    /// Also hold this external lock in Redis during the run: the key of an old script (SET KEY value NX EX) that still runs elsewhere
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<LockKey>,
    /// Also hold this lock in the store during the run, besides the locks of the file's job; may be given 16 times
    #[arg(long = "lock", value_name = "NAME[:shared|:K/N]", value_parser = value_parsers::demand)]
    pub(crate) locks: Vec<Demand>,
    /// Wait at most this long: for another machine, a pause, another slot or locks, and for a retry after a failure
    #[arg(long, value_name = "DURATION", value_parser = value_parsers::span)]
    pub(crate) wait: Option<Duration>,
    /// Exit at once if the slot cannot start now; do not take over from a machine that fails or dies
    #[arg(long, conflicts_with = "wait")]
    no_wait: bool,
    /// Wait at most this long for the store to record how the command ended [default: the lease TTL]
    #[arg(long, value_name = "DURATION", value_parser = value_parsers::span)]
    pub(crate) record_timeout: Option<Duration>,
    /// What to do with the command when its lease is lost [default: the file's, or continue]
    #[arg(long, value_name = "WHAT")]
    pub(crate) on_lost: Option<OnLostWord>,
    /// Which processes of the command are stopped with it [default: the file's, or group]
    #[arg(long, value_name = "WHAT")]
    pub(crate) kill_mode: Option<KillModeWord>,
    /// Exit with this code if the command was not started; a slot that was waited for and not done is still 69
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = value_parsers::number(0..=255_u8))]
    pub(crate) skip_exit_code: u8,
    /// Write what happened to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// This machine's name [default: the file's, or the host's]
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<NodeName>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The command and its arguments, after `--`; no shell, no placeholders
    #[arg(value_name = "CMD", required = true, last = true)]
    pub(crate) command: Vec<String>,
}

impl ExecArgs {
    /// What keeps it.
    pub(super) fn waits(&self) -> Wait {
        match self.wait {
            _ if self.no_wait => Wait::No,
            Some(span) => Wait::For(span),
            None => Wait::TakeOver,
        }
    }

    /// Refuses locks that the run does not hold within which this one is: it takes none.
    pub(super) fn are_held(&self, slot: &Slot, variable: impl Fn(&str) -> Option<String>) -> Result<(), Failure> {
        let held = variable(NAMES).unwrap_or_default();
        let missing = self.locks.iter().find(|demand| !held.split(' ').any(|name| name == demand.lock().as_str()));
        missing.map_or(Ok(()), |demand| {
            Err(Failure::Usage(format!(
                "--lock {demand}: this runs within a run of {slot}, which does not hold that lock: give --lock to the outermost exec"
            )))
        })
    }
}

/// What becomes of a command whose lease is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnLostWord {
    /// Let it continue: a repeated run is better than none
    Continue,
    /// Stop it before another machine can start
    Kill,
}

impl From<OnLostWord> for OnLost {
    fn from(word: OnLostWord) -> Self {
        match word {
            OnLostWord::Continue => Self::Continue,
            OnLostWord::Kill => Self::Kill,
        }
    }
}

/// How much of what a command started is stopped with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KillModeWord {
    /// Everything: nothing outlives the run
    Group,
    /// A daemon that the command leaves behind lives on
    Process,
}

impl From<KillModeWord> for KillMode {
    fn from(word: KillModeWord) -> Self {
        match word {
            KillModeWord::Group => Self::Group,
            KillModeWord::Process => Self::Process,
        }
    }
}

/// A job and one of its slots.
#[derive(Clone, Debug)]
pub(super) struct Task {
    /// The job: its limits, and what is started.
    pub(super) spec: JobSpec,
    /// The slot.
    pub(super) slot: Slot,
    /// The hash of the job as it is run here. The file's own hash, where nothing is run otherwise than it says: that can be
    /// compared with a daemon's.
    pub(super) hash: String,
    /// The caller named the slot by its key.
    pub(super) is_named: bool,
    /// For the registry, where no file makes the job known.
    pub(super) introduction: Option<Introduction>,
}

impl Task {
    /// What `exec` guards. The file's job of that name, if there is one, provides everything but its command.
    pub(super) fn of_exec(args: &ExecArgs, file: Option<&Config>, now: DateTime<Utc>) -> Result<Self, Failure> {
        check_command(&args.command)?;
        let declared = file.and_then(|config| config.jobs.get(&args.job));
        let defined = with_locks(defined(args, declared), args)?;
        let hash = hash::of_job(&defined);
        let spec = started(defined, args);
        let timetable = timetable(&spec)?;
        check_lease(&spec.policy, args, timetable.shortest_slot())?;
        let slot = match args.slot {
            Some(SlotArg::Key(key)) => timetable.slot_with_key(key).ok_or_else(|| {
                Failure::Usage(format!(
                    "--slot {key}: no slot of {} starts at that time; its slots are {} long",
                    spec.name,
                    length_words(spec.period)
                ))
            })?,
            _ => slot_at(&timetable, now)?,
        };
        let is_named = matches!(args.slot, Some(SlotArg::Key(_)));
        let command = hash::of_command(&spec.name, args.command.iter().map(String::as_str));
        let introduction = declared.is_none().then(|| Introduction {
            entry: JobEntry {
                command: Some(CrontabCommand { digest: command, conflict: None }),
                ..JobEntry::unplanned(&spec, JobOrigin::Crontab, now)
            },
            // Whoever names one slot by its key need not say how long the others are.
            certain: !is_named,
        });
        Ok(Self { spec, slot, hash, is_named, introduction })
    }

    /// A slot of a job of the file, run as that says.
    pub(super) fn of_file(spec: &JobSpec, slot: Slot) -> Result<Self, Failure> {
        let hash = hash::of_job(spec);
        Ok(Self { spec: spec.clone(), slot, hash, is_named: true, introduction: None })
    }
}

/// A lease of the command line that would block the slots that follow after a crash. The one of a file is `check`'s.
fn check_lease(policy: &Policy, args: &ExecArgs, slot: Duration) -> Result<(), Failure> {
    let Some(ttl) = args.lease_ttl.filter(|ttl| *ttl > slot && policy.concurrency.is_exclusive()) else {
        return Ok(());
    };
    let (ttl, slot, fits) = (format_duration(ttl), format_duration(slot), Policy::default_lease_ttl(slot));
    Err(Failure::Usage(format!(
        "--lease-ttl {ttl} is longer than the slot of {slot}: after a crash the lease would block the slots that follow; write \
         --lease-ttl {}, or leave it out",
        format_duration(fits)
    )))
}

/// A command line that names a program.
pub(super) fn check_command(words: &[String]) -> Result<(), Failure> {
    if words.first().is_none_or(|program| program.trim().is_empty()) {
        let why = "the command is empty: write it after --, as in `-- /usr/local/bin/bill --all`";
        return Err(Failure::Usage(why.to_owned()));
    }
    Ok(())
}

/// The job as the file and the flags define it.
fn defined(args: &ExecArgs, declared: Option<&JobSpec>) -> JobSpec {
    let mut spec = declared.cloned().unwrap_or_else(|| undeclared(args));
    if let Some(zone) = &args.timezone {
        spec.timezone = zone.clone();
    }
    if let Some(SlotArg::Span(period)) = args.slot {
        spec.period = period;
    }
    if declared.is_none() {
        spec.schedule = begins(spec.period);
    }
    let is_length_of_file = declared.is_some_and(|declared| declared.period == spec.period);
    if let (false, Ok(timetable)) = (is_length_of_file, Timetable::of(&spec)) {
        let default = Policy::default_lease_ttl(timetable.shortest_slot());
        spec.policy.lease_ttl = spec.policy.lease_ttl.min(default);
    }
    limit(&mut spec.policy, args);
    spec.command.kill_mode = args.kill_mode.map_or(spec.command.kill_mode, Into::into);
    let given = given(args);
    if !is_same(&spec.command.program, &given) {
        spec.command.program = given;
    }
    spec
}

/// The job with the locks of the flags besides its own; of a lock that both name the flag says how it is held.
fn with_locks(mut spec: JobSpec, args: &ExecArgs) -> Result<JobSpec, Failure> {
    if args.locks.is_empty() {
        return Ok(spec);
    }
    if spec.policy.on_store_error == OnStoreError::Run {
        return Err(Failure::Configuration(format!(
            "job {}: on_store_error = \"run\" would run it without its locks: write on_store_error = \"skip\", or leave out --lock",
            spec.name
        )));
    }
    let wrong = |error| Failure::Usage(format!("--lock: {error}; leave it out, or write another"));
    let given = Demands::new(args.locks.clone()).map_err(wrong)?;
    let is_given = |demand: &&Demand| given.iter().any(|other| other.lock() == demand.lock());
    let of_file = spec.policy.locks.iter().flatten().filter(|demand| !is_given(demand));
    let all = of_file.chain(&given).cloned().collect();
    spec.policy.locks = Some(Demands::new(all).map_err(wrong)?);
    Ok(spec)
}

/// The job as a crontab starts it: by its own words, in its own environment, when it says.
fn started(mut spec: JobSpec, args: &ExecArgs) -> JobSpec {
    spec.command.program = given(args);
    (spec.command.env, spec.command.env_file, spec.command.cwd) = Default::default();
    (spec.command.user, spec.command.group) = (None, None);
    // The crontab says when to try again; a start that it asked for is never too late.
    spec.policy.retry = RetryPolicy { delay: args.retry_delay.unwrap_or(Duration::ZERO), ..spec.policy.retry };
    spec.policy.start_deadline = None;
    spec
}

fn given(args: &ExecArgs) -> Program {
    Program::Direct(args.command.iter().map(|word| literally(word)).collect())
}

/// Whether the words of the command line are what the file has, be it with a shell around it.
fn is_same(declared: &Program, given: &Program) -> bool {
    match (declared, given) {
        (Program::Shell(line), Program::Direct(words)) => matches!(
            words.as_slice(),
            [shell, flag, script]
                if matches!(shell.as_str(), "sh" | "/bin/sh") && flag == "-c" && *script == literally(line)
        ),
        _ => declared == given,
    }
}

fn timetable(spec: &JobSpec) -> Result<Timetable, Failure> {
    Timetable::of(spec).map_err(|error| Failure::Configuration(format!("job {}: {error}", spec.name)))
}

fn slot_at(timetable: &Timetable, now: DateTime<Utc>) -> Result<Slot, Failure> {
    let none = || Failure::Usage(format!("job {} has no slot at {now}: name one with --slot KEY", timetable.job()));
    timetable.slot_at(now).ok_or_else(none)
}

/// A job that only a crontab knows: no timeout and no wait after a failure unless they are given.
fn undeclared(args: &ExecArgs) -> JobSpec {
    let policy = Policy { timeout: None, ..Policy::default() };
    JobSpec { policy, ..JobSpec::new(args.job.clone(), "", Program::Direct(Vec::new())) }
}

/// What the flags say.
fn limit(policy: &mut Policy, args: &ExecArgs) {
    policy.lease_ttl = args.lease_ttl.unwrap_or(policy.lease_ttl);
    policy.done_ttl = args.done_ttl.unwrap_or(policy.done_ttl);
    policy.max_attempts = args.max_attempts.unwrap_or(policy.max_attempts);
    policy.timeout = args.timeout.or(policy.timeout);
    policy.on_lost = args.on_lost.map_or(policy.on_lost, Into::into);
    policy.retry.delay = args.retry_delay.unwrap_or(policy.retry.delay);
}

fn length_words(period: Period) -> String {
    match period {
        Period::Fixed(_) => period.to_string(),
        _ => format!("one {period}"),
    }
}

/// A tick at the start of each slot: what `exec` can know of a crontab's schedule.
fn begins(period: Period) -> String {
    match period {
        Period::Day => "0 0 * * *".to_owned(),
        Period::Hour | Period::Tick => "0 * * * *".to_owned(),
        Period::Minute => "* * * * *".to_owned(),
        Period::Fixed(length) => match length.as_secs() {
            seconds if seconds.is_multiple_of(3_600) => format!("0 */{} * * *", seconds / 3_600),
            seconds if seconds.is_multiple_of(60) && 3_600_u64.is_multiple_of(seconds) => {
                format!("*/{} * * * *", seconds / 60)
            }
            seconds if seconds.is_multiple_of(60) => "* * * * *".to_owned(),
            _ => "* * * * * *".to_owned(),
        },
    }
}

/// A word without placeholders: its braces are its own.
fn literally(word: &str) -> String {
    word.replace('{', "{{").replace('}', "}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    use clap::Parser;

    use crate::exec::check_placeholders;

    #[test]
    fn a_slot_is_a_period_or_a_key() {
        assert_eq!("day".parse(), Ok(SlotArg::Span(Period::Day)));
        assert_eq!("2026-11-21T14Z".parse(), Ok(SlotArg::Key("2026-11-21T14Z".parse().unwrap())));
        for text in ["", "tick", "week", "Hour", "5x"] {
            assert!(text.parse::<SlotArg>().unwrap_err().contains("hour, minute or day, a duration that"), "{text}");
        }
        assert_eq!("15m".parse(), Ok(SlotArg::Span(Period::Fixed(Duration::from_secs(900)))));
        assert_eq!(["1m", "60s", "1h", "24h"].map(|text| text.parse().ok()), {
            let span = |period| Some(SlotArg::Span(period));
            [span(Period::Minute), span(Period::Minute), span(Period::Hour), span(Period::Day)]
        });
        assert_eq!("7m".parse::<SlotArg>().unwrap_err(), "a slot divides a day: write \"6m\" or \"8m\"");
    }

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ExecArgs,
    }

    fn task(flags: &[&str]) -> Result<Task, String> {
        let words = [&["exec", "--job", "billing"], flags, &["--", "find", ".", "-exec", "rm", "{}", "+"]].concat();
        let args = Line::parse_from(words).args;
        Task::of_exec(&args, None, "2026-11-21T14:10:00Z".parse().unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_job_that_no_file_knows_has_hours_in_utc_and_no_timeout() {
        let task = task(&[]).unwrap();
        assert_eq!(task.slot.to_string(), "billing@2026-11-21T14Z");
        assert_eq!((task.spec.policy.timeout, task.spec.policy.retry.delay), (None, Duration::ZERO));
        assert_eq!((task.spec.policy.max_attempts, task.spec.policy.on_lost), (3, OnLost::Continue));
    }

    #[test]
    fn a_lease_is_a_third_of_a_short_slot_unless_the_flag_or_the_file_says_more() {
        let ttl = |flags: &[&str]| task(flags).unwrap().spec.policy.lease_ttl.as_secs();
        assert_eq!((ttl(&[]), ttl(&["--slot", "day"]), ttl(&["--slot", "minute"])), (60, 60, 20));
        assert_eq!(ttl(&["--slot", "minute", "--lease-ttl", "50s"]), 50);
        let of_file = |flags: &[&str]| {
            let words = [&["exec", "--job", "billing"], flags, &["--", "true"]].concat();
            let args = Line::parse_from(words).args;
            let task = Task::of_exec(&args, Some(&file()), "2026-11-21T14:10:00Z".parse().unwrap()).unwrap();
            task.spec.policy.lease_ttl.as_secs()
        };
        assert_eq!((of_file(&[]), of_file(&["--slot", "minute"])), (60, 20));
    }

    #[test]
    fn the_command_is_run_as_it_was_written_braces_and_all() {
        let Program::Direct(words) = task(&[]).unwrap().spec.command.program else { panic!("a list") };
        assert!(words.iter().all(|word| check_placeholders(word).is_ok()), "{words:?}");
        assert_eq!(words.get(4).map(String::as_str), Some("{{}}"));
    }

    #[test]
    fn a_slot_is_that_of_now_or_the_one_that_is_named() {
        let slot = |flags: &[&str]| task(flags).map(|task| task.slot.to_string());
        assert_eq!(slot(&["--slot", "minute"]).as_deref(), Ok("billing@2026-11-21T14:10Z"));
        assert_eq!(slot(&["--slot", "15m"]).as_deref(), Ok("billing@2026-11-21T14Z"));
        assert_eq!(slot(&["--slot", "6h"]).as_deref(), Ok("billing@2026-11-21T12Z"));
        assert_eq!(slot(&["--slot", "6h", "--timezone", "Asia/Tokyo"]).as_deref(), Ok("billing@2026-11-21T09Z"));
        assert_eq!(slot(&["--slot", "15m", "--timezone", "Asia/Kathmandu"]).as_deref(), Ok("billing@2026-11-21T14Z"));
        assert_eq!(slot(&["--slot", "day", "--timezone", "Asia/Tokyo"]).as_deref(), Ok("billing@2026-11-20T15Z"));
        assert_eq!(slot(&["--slot", "2026-11-21T13Z"]).as_deref(), Ok("billing@2026-11-21T13Z"));
        let odd = slot(&["--slot", "2026-11-21T13:30Z"]).unwrap_err();
        assert!(odd.contains("no slot of billing starts at that time"), "{odd}");
    }

    fn file() -> Config {
        let text = "[jobs.billing]\nschedule = \"5 * * * *\"\ncommand = \"find . -exec rm {} +\"\n";
        let environment = crate::config::Environment::new("2026-11-21T14:10:00Z".parse().unwrap());
        crate::config::parse("jobs.toml", text.to_owned(), &environment).unwrap().0
    }

    fn hash(file: Option<&Config>, flags: &[&str], command: &[&str]) -> String {
        let words = [&["exec", "--job", "billing"], flags, &["--"], command].concat();
        let now = "2026-11-21T14:10:00Z".parse().unwrap();
        Task::of_exec(&Line::parse_from(words).args, file, now).unwrap().hash
    }

    #[test]
    fn the_hash_is_that_of_the_file_where_the_same_is_run_under_the_same_limits() {
        let file = file();
        let of_file = file.job_hashes().into_values().next().unwrap();
        let same = ["sh", "-c", "find . -exec rm {} +"];
        assert_eq!(hash(Some(&file), &[], &same), of_file);
        assert_ne!(hash(Some(&file), &[], &["sh", "-c", "true"]), of_file);
        assert_ne!(hash(Some(&file), &["--max-attempts", "9"], &same), of_file);
        assert_ne!(hash(None, &[], &same), of_file, "without the file it has neither its schedule nor its limits");
        assert_eq!(hash(None, &[], &same), hash(None, &[], &same), "two machines with one line are of one mind");
    }

    #[test]
    fn a_job_that_no_file_knows_is_introduced_with_what_is_certain_of_it() {
        let known = task(&["--slot", "day", "--max-attempts", "5"]).unwrap().introduction.unwrap();
        assert_eq!((known.entry.origin, known.entry.enabled, known.certain), (JobOrigin::Crontab, false, true));
        assert_eq!((known.entry.period.as_str(), known.entry.max_attempts), ("day", 5));
        assert!(!task(&["--slot", "2026-11-21T13Z"]).unwrap().introduction.unwrap().certain);
    }

    #[test]
    fn locks_of_flags_are_held_besides_those_of_the_file() {
        let text = |line: &str| format!("[jobs.billing]\nschedule = \"5 * * * *\"\ncommand = [\"true\"]\n{line}\n");
        let read = |line: &str| {
            let environment = crate::config::Environment::new("2026-11-21T14:10:00Z".parse().unwrap());
            crate::config::parse("jobs.toml", text(line), &environment).unwrap().0
        };
        let locks = |file: Option<&Config>, flags: &[&str]| {
            let words = [&["exec", "--job", "billing"], flags, &["--", "true"]].concat();
            let task = Task::of_exec(&Line::parse_from(words).args, file, "2026-11-21T14:10:00Z".parse().unwrap());
            let locks = task.map(|task| task.spec.policy.locks.map(|locks| locks.to_string()));
            locks.map_err(|error| error.to_string())
        };
        let (bare, with) = (read(""), read("locks = [\"a\", { name = \"gpu\", of = 4 }]"));
        assert_eq!(locks(None, &[]), Ok(None));
        assert_eq!(locks(None, &["--lock", "a", "--lock", "b:shared"]), Ok(Some("a, b:shared".to_owned())));
        assert_eq!(locks(Some(&bare), &["--lock", "gpu:2/4"]), Ok(Some("gpu:2/4".to_owned())));
        assert_eq!(locks(Some(&with), &[]), Ok(Some("a, gpu:1/4".to_owned())));
        assert_eq!(locks(Some(&with), &["--lock", "b", "--lock", "gpu:2/4"]), Ok(Some("a, b, gpu:2/4".to_owned())));
        let twice = locks(None, &["--lock", "a", "--lock", "a:shared"]).unwrap_err();
        assert!(twice.contains("--lock: a is named twice in one request"), "{twice}");
        let runs = locks(Some(&read("on_store_error = \"run\"")), &["--lock", "a"]).unwrap_err();
        assert!(runs.contains("on_store_error = \"run\" would run it without its locks"), "{runs}");
        assert_eq!(locks(Some(&read("on_store_error = \"run\"")), &[]), Ok(None));
    }

    #[test]
    fn within_a_run_only_its_own_locks_may_be_named() {
        let held = |flags: &[&str]| {
            let words = [&["exec", "--job", "billing"], flags, &["--", "true"]].concat();
            let (args, slot) = (Line::parse_from(words).args, task(&[]).unwrap().slot);
            args.are_held(&slot, |_| Some("a gpu".to_owned())).map_err(|error| error.to_string())
        };
        assert_eq!(held(&[]), Ok(()));
        assert_eq!(held(&["--lock", "gpu:2/4", "--lock", "a"]), Ok(()));
        let refused = held(&["--lock", "a", "--lock", "g"]).unwrap_err();
        assert!(
            refused.contains("--lock g: this runs within a run of billing@2026-11-21T14Z, which does not hold"),
            "{refused}"
        );
    }

    #[test]
    fn flags_win() {
        let spec =
            task(&["--max-attempts", "1", "--timeout", "5m", "--on-lost", "kill", "--retry-delay", "1m"]).unwrap().spec;
        let policy = spec.policy;
        assert_eq!((policy.max_attempts, policy.timeout), (1, Some(Duration::from_secs(300))));
        assert_eq!((policy.on_lost, policy.retry.delay), (OnLost::Kill, Duration::from_secs(60)));
    }
}
