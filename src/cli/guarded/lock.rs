//! `cronward lock`: one command, run while locks are held.
//!
//! The owner of the locks travels in the environment: what the command starts may take them again, and all that runs under one
//! `cronward lock` is one owner.

use std::path::Path;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::admin::words::harmless;
use crate::cli::console::{Console, tell_aside, told_within};
use crate::cli::failure::Failure;
use crate::cli::guarded::around::{held_around, owners_around};
use crate::cli::guarded::forward::{Forwarded, Signals};
use crate::cli::guarded::run::{listen, node_name, store_patience};
use crate::cli::guarded::task::{OnLostWord, check_command};
use crate::cli::guarded::told::{AROUND, HOLDS, HOLDS_KEY, OF_LOCKS, OWNER, handed_down};
use crate::cli::guarded::verdict::{Verdict, of_exit, of_signal, of_silence};
use crate::cli::session::{connect_locks, is_shared};
use crate::cli::store_args::{StoreAddress, StoreArgs};
use crate::cli::{ExitCode, value_parsers};
use crate::clock::{Clock, Mono, SystemClock};
use crate::config::format_duration;
use crate::drive::timers;
use crate::exec::{OF_A_RUN, Output};
use crate::job::{CommandSpec, NodeName, Program};
use crate::lock::{BuildError, Held, LockError, LockHolder, LockRelease, Locks, OwnerId, Standing, TryLockError};
use crate::machine::TrustWindow;
use crate::resource::{Demand, Demands};
use crate::slot::{Exit, LeaseDeadline};
use crate::store::StoreError;

/// How long a lock is waited for by whom holds others already, if not said: two such owners can wait for each other.
const NESTED_WAIT: Duration = Duration::from_secs(600);

/// How long a store that is away is asked at the most to release what the command has run under.
const LONGEST_RELEASE: Duration = Duration::from_secs(30);

/// How long whoever reads the output of a command that was killed has to take the rest of it. The output of one that ended by itself is
/// waited for as long as somebody reads it.
const LAST_OUTPUT: Duration = Duration::from_secs(10);

/// From TERM to KILL where the locks are lost, as in `jobs.toml` where that says nothing.
const KILL_AFTER: Duration = Duration::from_secs(10);

/// Run one command while holding locks: other requests for the same locks wait in turn
///
/// All locks are acquired in one step, all of them or none. They are released when the command and all processes that it has
/// started have ended. Requests are served in order. A lock that is held is waited for without a time limit, unless --wait or
/// --try says otherwise.
///
/// NAME is exclusive. NAME:shared is held beside other shared holders. NAME:2/4 takes 2 of 4 permits.
///
/// The environment of the command has CRONWARD_LOCKS (the names, separated by spaces), CRONWARD_LOCK_FENCE (a number that is
/// larger than that of every earlier holder) and CRONWARD_LOCK_OWNER. A nested cronward lock has the same owner: it re-enters
/// the locks that are already held, and two nested ones do not exclude each other. It waits at most 10 minutes for other locks,
/// unless --wait says otherwise.
///
/// Stdin, stdout, stderr and signals are passed on as by cronward exec.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Example: cronward lock ledger schema:shared --store redis://127.0.0.1/ -- /usr/local/bin/close-books",
    after_help = "Exit codes: the command's own, or 128 + the signal that ended it; 1 (or -E) a lock is not free, 64 usage, 69 store refuses, \
                  74 output lost, 75 store unavailable, 76 lock lost and the command killed, 78 configuration, 126 cannot run, 127 not found."
)]
pub(crate) struct LockArgs {
    /// The locks, 1 to 16, each once: NAME, NAME:shared or NAME:K/N
    #[arg(value_name = "NAME[:shared|:K/N]", required = true, value_parser = value_parsers::demand)]
    pub(crate) locks: Vec<Demand>,
    /// Wait at most this long [default: no limit; 10m inside another cronward lock]
    #[arg(long, value_name = "DURATION", value_parser = value_parsers::span)]
    pub(crate) wait: Option<Duration>,
    /// Exit at once if a lock is not free
    #[arg(long = "try", conflicts_with = "wait")]
    pub(crate) at_once: bool,
    /// How long the locks last without renewal, 500ms to 1d; after this process dies, others wait for this time
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = value_parsers::span)]
    pub(crate) ttl: Duration,
    /// What to do with the command when a lock is lost
    #[arg(long, value_name = "WHAT", default_value = "kill")]
    pub(crate) on_lost: OnLostWord,
    /// Exit with this code if a lock is not free; with 0, print nothing
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = 1, value_parser = value_parsers::number(0..=255_u8))]
    pub(crate) busy_exit_code: u8,
    /// This machine's name [default: the file's, or the host's]
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<NodeName>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The command and its arguments, after `--`; no shell, no placeholders
    #[arg(value_name = "CMD", required = true, last = true)]
    pub(crate) command: Vec<String>,
}

/// Runs one command under locks. Nothing but the command says anything where all is as it should be.
pub(crate) async fn lock(args: &LockArgs, console: &mut Console) -> Result<(), Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::Usage(format!("{error}; leave it out, or write another"));
    let demands = Demands::new(args.locks.clone()).map_err(|error| wrong(&error))?;
    check_command(&args.command)?;
    let outer = outer_owner()?;
    let file = args.store.read_file(console)?;
    let address = args.store.address_unwarned(file.as_ref())?;
    let node = args.node.clone().unwrap_or_else(|| node_name(file.as_ref()));
    is_shared(&address)?;
    let signals = listen()?;
    let store = connect_locks(&address).await?;
    let around = owners_around(outer, |name| std::env::var(name).ok());
    if let Some(why) = held_around(&*store, &demands, &around).await {
        let verdict = not_started(ExitCode::StoreRefuses, &why);
        verdict.tell(console);
        return verdict.ending();
    }
    let client = Locks::builder(store, node.as_str()).ttl(args.ttl).label(label(&args.command));
    let client = client.store_wait(store_patience(&address)).build().map_err(not_built)?;
    let owner = outer.map_or_else(|| client.owner(), |outer| client.owned_by(outer));
    let wait = args.wait.or_else(|| outer.map(|_| NESTED_WAIT));
    let asked = owner.request().demanding(&demands).lock_until(!args.at_once, over(wait, &signals.ended)).await;
    let verdict = match (asked, signals.ended_by()) {
        (Ok(Some(held)), Some(signal)) => {
            let _ = released(held, args.ttl, store_patience(&address), &signals.ended).await;
            of_signal(signal)
        }
        (_, Some(signal)) => of_signal(signal),
        (Ok(Some(held)), None) => Locked { args, address: &address, demands: &demands, signals }.run(held).await,
        (Ok(None), None) => {
            let wait = wait.map(format_duration).unwrap_or_default();
            busy(args, &format!("{demands} did not become free within {wait}"))
        }
        (Err(TryLockError::Busy { by, .. }), None) => busy(args, &format!("{demands}: held {}", by_whom(&by))),
        // Whoever does not wait wants no place in the queue: it is busy, as with fewer before it.
        (Err(TryLockError::Lock(LockError::Full)), None) if args.at_once => {
            busy(args, &format!("{demands}: {}", LockError::Full))
        }
        (Err(TryLockError::Lock(error)), None) => refused(&demands, &error)?,
    };
    verdict.tell(console);
    verdict.ending()
}

/// The owner under whose locks this process runs, as its environment says it.
fn outer_owner() -> Result<Option<OwnerId>, Failure> {
    // An empty one is how a shell leaves it out for one command.
    let Some(text) = std::env::var_os(OWNER).filter(|text| !text.is_empty()) else { return Ok(None) };
    let owner = text.to_str().and_then(|text| text.parse().ok());
    let wrong = || Failure::Usage(format!("{OWNER} in the environment is no owner of locks: unset it"));
    owner.map(Some).ok_or_else(wrong)
}

/// What people read who wait for it: the program's name. Its arguments may hold secrets.
fn label(command: &[String]) -> String {
    let program = command.first().map_or("", String::as_str);
    Path::new(program).file_name().map_or_else(|| program.to_owned(), |name| name.to_string_lossy().into_owned())
}

fn not_built(error: BuildError) -> Failure {
    match error {
        BuildError::Random(_) => Failure::Internal(error.to_string()),
        BuildError::Limit { what, bounds } => Failure::Usage(format!("--{what}: write a duration of {bounds}")),
        other => Failure::Usage(other.to_string()),
    }
}

/// The end of a wait: its time is over, or a signal came.
async fn over(wait: Option<Duration>, ended: &CancellationToken) {
    let due = wait.map(|wait| SystemClock.now().mono + wait);
    tokio::select! {
        () = ended.cancelled() => {}
        () = timers::until(&SystemClock, due) => {}
    }
}

/// What the release came to; none where the store did not answer in time.
async fn released(
    held: Held,
    ttl: Duration,
    patience: Duration,
    ended: &CancellationToken,
) -> Option<Result<LockRelease, StoreError>> {
    tokio::select! {
        biased;
        released = held.release() => Some(released),
        () = given_up(ttl, patience, ended) => None,
    }
}

/// The command is over, and so is the patience with a store that is away: after the TTL nothing is left to be released, and whoever
/// waits for this process waits no longer than [`LONGEST_RELEASE`]; once a signal came, no longer than for any other answer.
async fn given_up(ttl: Duration, patience: Duration, ended: &CancellationToken) {
    over(Some(ttl.min(LONGEST_RELEASE)), ended).await;
    if ended.is_cancelled() {
        timers::until(&SystemClock, Some(SystemClock.now().mono + patience)).await;
    }
}

/// Others hold it. Whoever says that this is a success needs no words: cron mails each.
fn busy(args: &LockArgs, why: &str) -> Verdict {
    let told = (args.busy_exit_code != 0).then(|| format!("{why}; the command was not started"));
    Verdict { code: args.busy_exit_code, result: "busy", told: told.into_iter().collect() }
}

/// Nothing is held, and waiting does not help.
fn refused(demands: &Demands, error: &LockError) -> Result<Verdict, Failure> {
    let code = match error {
        LockError::Store(error) => return Ok(of_silence(error.kind, &error.to_string())),
        LockError::Full => ExitCode::TryAgain,
        LockError::WouldWaitForItself | LockError::Evicted => ExitCode::StoreRefuses,
        LockError::Demand(_) | LockError::Lost | LockError::Abandoned | LockError::ShutDown => {
            return Err(Failure::Internal(error.to_string()));
        }
    };
    Ok(not_started(code, &format!("{demands}: {error}")))
}

fn not_started(code: ExitCode, why: &str) -> Verdict {
    let told = format!("{why}; the command was not started");
    Verdict { code: code as u8, result: "refused", told: vec![told] }
}

fn by_whom(by: &LockHolder) -> String {
    let label = if by.label.is_empty() { String::new() } else { format!(" ({})", harmless(&by.label)) };
    format!("by {}{label}", by.node)
}

/// A command that is to run under what was asked for.
struct Locked<'a> {
    args: &'a LockArgs,
    address: &'a StoreAddress,
    demands: &'a Demands,
    signals: Signals,
}

/// The result where the command was killed for a loss.
const LOST: &str = "lost";

/// How the command ended, and how what it ran under stood.
struct CommandEnd {
    exit: Exit,
    /// Since when it was not held any more, as far as this process can tell.
    lost: Option<Mono>,
    /// Who was granted it then, where the store said so.
    to: Option<LockHolder>,
}

/// The same for the caller.
struct LockVerdict {
    verdict: Verdict,
    /// Its words are of a loss.
    is_lost: bool,
}

impl Locked<'_> {
    /// Runs the command, and releases once nothing of it is left.
    async fn run(&self, held: Held) -> Verdict {
        let work =
            Forwarded::new(&self.address.url, (self.command(&held), true), Output::PassThrough, self.signals.clone());
        let ended = self.attend(&work, &held).await;
        let patience = store_patience(self.address);
        let released = released(held, self.args.ttl, patience, &self.signals.ended).await;
        let LockVerdict { mut verdict, is_lost } = self.judge(ended, released);
        if is_lost {
            // At once: the command's output may find no reader for as long as this process lasts.
            let told = std::mem::take(&mut verdict.told).into_iter().map(|line| format!("cronward: {line}"));
            if !told_within(told.collect(), LAST_OUTPUT).await {
                return verdict;
            }
        }
        let due = (verdict.result == LOST).then(|| SystemClock.now().mono + LAST_OUTPUT);
        tokio::select! {
            biased;
            unwritten = work.passed_on() => verdict.with_unwritten(unwritten),
            () = timers::until(&SystemClock, due) => {
                let span = format_duration(LAST_OUTPUT);
                let told = format!("cronward: the rest of the command's output was not read within {span} and is lost");
                told_within(vec![told], LAST_OUTPUT).await;
                verdict
            }
        }
    }

    fn command(&self, held: &Held) -> CommandSpec {
        let mut command = CommandSpec::new(Program::Direct(self.args.command.clone()));
        // A guard within it finds the run that all of this is a part of.
        command.env.extend(handed_down(OF_A_RUN.into_iter().chain([HOLDS, HOLDS_KEY, AROUND])));
        let names: Vec<String> = self.demands.names().iter().map(ToString::to_string).collect();
        let told = [names.join(" "), held.fence().to_string(), held.owner().to_string()];
        command.env.extend(OF_LOCKS.map(str::to_owned).into_iter().zip(told));
        command
    }

    fn kills(&self) -> bool {
        self.args.on_lost == OnLostWord::Kill
    }

    /// By when the command has to be over unless what is held is renewed: its keeper goes by it, also while this process stands still.
    fn deadline(&self, trust: Option<TrustWindow>) -> Option<LeaseDeadline> {
        trust.filter(|_| self.kills()).map(|trust| trust.command_deadline(KILL_AFTER))
    }

    async fn attend(&self, work: &Forwarded, held: &Held) -> CommandEnd {
        let mut trust = held.trust();
        let (lease, renewals) = watch::channel(self.deadline(*trust.borrow_and_update()));
        let mut started = work.start_other(format!("lock {}", self.demands), renewals).await;
        let (mut lost, mut kill_at) = (None, None);
        let exit = loop {
            tokio::select! {
                biased;
                exit = started.wait() => break exit,
                Ok(()) = trust.changed() => {
                    let deadline = self.deadline(*trust.borrow_and_update());
                    lease.send_if_modified(|known| deadline.is_some_and(|moved| known.replace(moved) != Some(moved)));
                }
                _ = held.lost(), if lost.is_none() => {
                    let now = SystemClock.now().mono;
                    lost = Some(now);
                    if self.kills() {
                        started.terminate();
                        kill_at = Some(now + KILL_AFTER);
                    } else {
                        // At once: the command may go on for hours.
                        tell_aside(format!("cronward: {}", self.goes_on(held)));
                    }
                }
                () = timers::until(&SystemClock, kill_at) => {
                    started.kill();
                    kill_at = None;
                }
            }
        };
        // In doubt for a while, and held after all.
        let lost = lost.filter(|_| self.kills() || held.standing() != Standing::Held);
        CommandEnd { exit, lost, to: held.taken_by() }
    }

    fn goes_on(&self, held: &Held) -> String {
        let to = held.taken_by().map_or_else(String::new, |to| format!("; it is held {}", by_whom(&to)));
        let how = if held.standing() == Standing::Lost { "was lost" } else { "could not be renewed in time" };
        format!("{}: the lock {how}{to}; the command goes on, and another holder may overlap", self.demands)
    }

    fn judge(&self, ended: CommandEnd, released: Option<Result<LockRelease, StoreError>>) -> LockVerdict {
        let CommandEnd { exit, lost, to } = ended;
        // What it left behind may have taken longer to stop than the command took.
        let stopped = lost.is_some_and(|lost| exit.ended.is_none_or(|ended| ended >= lost));
        let killed = self.kills() && (exit.lapsed.is_some() || stopped);
        let verdict = of_exit(exit);
        let Verdict { code, result, mut told } = verdict;
        let demands = self.demands;
        // Whoever was granted it may have left since; then the renewal has the name, and the release has none.
        let by = match &released {
            Some(Ok(LockRelease::Overtaken { by: Some(by) })) => Some(by),
            _ => to.as_ref(),
        };
        let by = by.map_or_else(String::new, |by| format!("; since then it was held {}", by_whom(by)));
        if killed {
            told.push(format!("{demands}: the lock was lost or its renewal was overdue{by}; the command was killed"));
            let verdict = Verdict { code: ExitCode::LeaseLost as u8, result: LOST, told };
            return LockVerdict { verdict, is_lost: true };
        }
        let is_lost =
            lost.is_some() || matches!(released, Some(Ok(LockRelease::Overtaken { .. } | LockRelease::Expired)));
        match released {
            _ if lost.is_some() => told.push(format!(
                "{demands}: the lock was lost or its renewal was overdue{by}; another holder may have overlapped"
            )),
            Some(Ok(LockRelease::Overtaken { .. })) => {
                told.push(format!("{demands}: the lock expired or was evicted before it was released{by}; another holder may have overlapped"));
            }
            Some(Ok(LockRelease::Released)) => {}
            Some(Ok(LockRelease::Expired)) => {
                told.push(format!(
                    "{demands}: the lock expired or was evicted before it was released; nobody else has held it since"
                ));
            }
            Some(Err(error)) => told.push(self.not_released(&error.to_string())),
            None => told.push(self.not_released("it did not answer in time")),
        }
        LockVerdict { verdict: Verdict { code, result, told }, is_lost }
    }

    fn not_released(&self, why: &str) -> String {
        let ttl = format_duration(self.args.ttl);
        format!(
            "{}: the store has not confirmed the release: {why}; the lock is free after {ttl} at most",
            self.demands
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use clap::Parser;

    use crate::store::{Applied, ErrorKind, Op};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: LockArgs,
    }

    fn args(flags: &[&str]) -> LockArgs {
        Line::parse_from([&["lock", "x"], flags, &["--", "/usr/bin/bill", "--password", "hunter2"]].concat()).args
    }

    #[test]
    fn others_are_told_the_programs_name_and_nothing_of_its_arguments() {
        assert_eq!(label(&args(&[]).command), "bill");
    }

    #[test]
    fn who_calls_a_busy_lock_a_success_is_told_nothing() {
        assert_eq!(busy(&args(&[]), "x: held").code, 1);
        let verdict = busy(&args(&["-E", "0"]), "x: held");
        assert_eq!((verdict.code, verdict.told), (0, Vec::new()));
    }

    #[test]
    fn what_waiting_does_not_help_is_told_apart_from_what_may_be_tried_again() {
        let demands = Demands::from("x:2/4".parse::<Demand>().unwrap());
        let verdict = |error| refused(&demands, &error).unwrap();
        let store = |kind| LockError::Store(StoreError::new(kind, Applied::No, Op::Acquire, "redis://h", "refused"));
        assert_eq!(verdict(store(ErrorKind::Unavailable)).code, 75);
        assert_eq!(verdict(store(ErrorKind::Denied)).code, 69);
        assert_eq!(verdict(LockError::Full).code, 75);
        let own = verdict(LockError::WouldWaitForItself);
        let told = "x:2/4: the owner holds a lock of the request already, and would wait for itself; the command was not started";
        assert_eq!((own.code, own.told), (69, vec![told.to_owned()]));
    }

    #[tokio::test]
    async fn a_release_is_waited_for_no_longer_than_the_ttl_and_after_a_signal_no_longer_than_any_answer() {
        let (short, day, ended) = (Duration::from_millis(1), Duration::from_secs(86_400), CancellationToken::new());
        given_up(short, day, &ended).await;
        ended.cancel();
        given_up(day, short, &ended).await;
    }

    #[tokio::test]
    async fn a_wait_ends_with_its_time_or_with_a_signal() {
        let ended = CancellationToken::new();
        over(Some(Duration::from_millis(1)), &ended).await;
        ended.cancel();
        over(None, &ended).await;
    }
}
