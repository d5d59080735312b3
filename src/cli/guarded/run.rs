//! `cronward exec`: from the command line to the exit code.
//!
//! A guarded command that guards the same slot again runs under the lease that is held already, instead of waiting for itself.
//! The lease's token travels in the environment; only the outermost settles.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use nix::unistd::gethostname;

use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::guarded::around::{owners_around, waits_for_itself};
use crate::cli::guarded::forward::{Forwarded, Signals};
use crate::cli::guarded::repeated::Repeated;
use crate::cli::guarded::report_file::ReportFile;
use crate::cli::guarded::task::{ExecArgs, Task};
use crate::cli::guarded::told::{AROUND, HOLDS, HOLDS_KEY, OF_LOCKS, handed_down};
use crate::cli::guarded::unfinished::{Unfinished, is_open};
use crate::cli::guarded::verdict::{Telling, Verdict, finish, is_outside, judge, not_begun, not_opened};
use crate::cli::guarded::waiting::{LossTold, StoreWait};
use crate::cli::locks::{kept_for, kept_for_flag};
use crate::cli::session::{connect, is_shared};
use crate::cli::store_args::StoreAddress;
use crate::clock::{Clock, Mono, SystemClock, offset_ms};
use crate::config::Config;
use crate::drive::{
    Account, Entropy, HolderWait, Once, Patience, Renewals, Started, Traces, Wait, Work, locks, timers,
};
use crate::exec::Output;
use crate::job::{CommandSpec, LockKey, NodeName, Policy};
use crate::machine::Assignment;
use crate::observe::{FanOut, Observer};
use crate::reply::ClaimAnswer;
use crate::slot::{Attempt, Audit, Exit, Mark, RunContext, Slot, Token, Trigger};
use crate::store::{Store, StoreError};

/// The pause before a store that did not answer is asked again.
const AGAIN: Duration = Duration::from_millis(200);

/// A store that hangs or is away for a moment is asked again this often before the command line gives up.
const STORE_TRIES: u32 = 4;

/// Guards one command. Nothing but the command says anything where all is as it should be: cron mails every word.
pub(crate) async fn exec(args: &ExecArgs, console: &mut Console) -> Result<(), Failure> {
    let file = args.store.read_job(&args.job, console)?;
    let mut address = args.store.address_unwarned(file.as_ref())?;
    address.options.lock_key.clone_from(&args.key);
    let task = Task::of_exec(args, file.as_ref(), SystemClock.now().wall)?;
    let signals = listen()?;
    let report = args.report.as_deref().map(ReportFile::begin).transpose()?;
    let telling = Telling { report, ..Telling::default() };
    let node = args.node.clone().unwrap_or_else(|| node_name(file.as_ref()));
    let store = match connect(&address).await {
        Ok(store) => store,
        Err(failure) => return Err(not_opened(task.slot, failure, telling, console)),
    };
    let keeps =
        || if args.locks.is_empty() { kept_for(&task.spec, &store, &address) } else { kept_for_flag(&store, &address) };
    if let Err(failure) = is_shared(&address).and_then(|()| keeps()) {
        return Err(not_opened(task.slot, failure, telling, console));
    }
    let (output, trigger) = (Output::PassThrough, Trigger::Exec);
    let (wait, record_timeout) = (args.waits(), args.record_timeout);
    let (past, audit) = (false, None);
    let guarded = Guarded { task, address, store, node, signals, trigger, past, audit, wait, record_timeout, output };
    let outer = Outer::of(&guarded.task, |name| std::env::var(name).ok());
    let (account, verdict) = match guarded.within_which(outer).await {
        Ok(Some(outer)) => {
            args.are_held(&guarded.task.slot, |name| std::env::var(name).ok())?;
            guarded.within(&outer).await?
        }
        Ok(None) => guarded.outermost(args.skip_exit_code).await?,
        Err(error) => {
            let unknown = Some((error.kind, error.to_string()));
            let account = Account { store_error: unknown, ..Account::new(guarded.task.slot.clone()) };
            let verdict = judge(&account, args.skip_exit_code, None);
            (account, verdict)
        }
    };
    finish(&account, &verdict, telling, console)
}

/// Whose slot is not current by the store's clock: either another slot was named, or this machine's clock is wrong.
async fn refused(account: &Account, verdict: Verdict, store: &dyn Store) -> Verdict {
    let (slot, now) = (&account.slot, SystemClock.now().wall);
    let future = not_begun(slot, now).filter(|_| account.answer == Some(ClaimAnswer::Early));
    match future {
        Some(future) => future,
        None if slot.end() <= now => verdict,
        None => verdict.with_clock(ahead_ms(slot, store).await),
    }
}

/// How far this machine's clock is ahead of the store's, where that says what it shows.
async fn ahead_ms(slot: &Slot, store: &dyn Store) -> Option<i64> {
    let sent = SystemClock.now();
    let (shown, _) = store.inspect(std::slice::from_ref(slot)).await.ok()?;
    Some(offset_ms(sent, SystemClock.now(), shown))
}

/// The file's name for this machine, or the host's.
pub(super) fn node_name(file: Option<&Config>) -> NodeName {
    let host = || gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    file.map_or_else(|| NodeName::nearest(&host()), |config| config.node.name.clone())
}

pub(super) fn listen() -> Result<Signals, Failure> {
    Signals::listen().map_err(|error| Failure::Internal(format!("cannot listen for signals: {error}")))
}

/// How long a store may be silent before the command line gives up.
pub(super) fn store_patience(address: &StoreAddress) -> Duration {
    address.options.op_timeout * STORE_TRIES
}

fn entropy() -> Result<Entropy, Failure> {
    Entropy::from_system().map_err(|error| Failure::Internal(format!("no random source: {error}")))
}

/// A task with all that it takes to run it.
pub(super) struct Guarded {
    pub(super) task: Task,
    pub(super) address: StoreAddress,
    pub(super) store: Arc<dyn Store>,
    pub(super) node: NodeName,
    pub(super) signals: Signals,
    pub(super) trigger: Trigger,
    /// Asked for by name although the slot is over.
    pub(super) past: bool,
    /// The person who asked.
    pub(super) audit: Option<Audit>,
    pub(super) wait: Wait,
    /// For the store to record how the command ended; the lease's TTL if not said.
    pub(super) record_timeout: Option<Duration>,
    /// What becomes of the command's output.
    pub(super) output: Output,
}

impl Guarded {
    /// Claims the slot, runs the command, settles. Beside the account, a line for each of the command's streams that could not
    /// be written after its end was recorded.
    pub(super) async fn run(self) -> Result<(Account, Vec<String>), Failure> {
        let entropy = entropy()?;
        let assignment = self.assignment(&entropy);
        let traces = Traces {
            instance: entropy.token().to_string(),
            job_hash: self.task.hash.clone(),
            introduction: self.task.introduction.clone(),
        };
        let work = self.work(self.task.spec.command.clone());
        let once = Once {
            assignment,
            work: Arc::<Forwarded>::clone(&work),
            store: Arc::clone(&self.store),
            clock: Arc::new(SystemClock),
            observer: self.listeners(),
            patience: self.patience(),
        };
        let mut account = once.until_noted(traces, self.signals.ended.clone()).await;
        account.past = account.slot.end() <= SystemClock.now().wall;
        Ok((account, work.passed_on().await))
    }

    /// The same for a run that stands in no other one of its slot; `skipped` is the code for a command that was not started.
    async fn outermost(self, skipped: u8) -> Result<(Account, Verdict), Failure> {
        if let Some(verdict) = waits_for_itself(&self.task, &self.store, |name| std::env::var(name).ok()).await {
            return Ok((Account::new(self.task.slot), verdict));
        }
        let (signals, store, unfinished) = (self.signals.clone(), Arc::clone(&self.store), self.unfinished());
        let repeated = Repeated::of(&self.task, Arc::clone(&self.store), self.node.clone(), &entropy()?);
        let (account, unwritten) = self.run().await?;
        if is_open(&account) {
            return Ok(unfinished.judge_unless_ended(account, skipped, &signals).await);
        }
        let mut verdict = judge(&account, skipped, signals.ended_by()).with_unwritten(unwritten);
        verdict.told.extend(repeated.line(&account).await);
        let interrupted = signals.ended_by().is_some();
        let verdict =
            if is_outside(&account) && !interrupted { refused(&account, verdict, &*store).await } else { verdict };
        Ok((account, verdict))
    }

    /// Who hears what is worth a word before the end.
    fn listeners(&self) -> Arc<dyn Observer> {
        let locks = self.task.spec.policy.locks.as_ref().map(ToString::to_string).unwrap_or_default();
        let all: Vec<Arc<dyn Observer>> = vec![Arc::new(StoreWait::default()), Arc::new(LossTold { locks })];
        Arc::new(FanOut(all))
    }

    fn work(&self, mut command: CommandSpec) -> Arc<Forwarded> {
        // For one that is nested in it.
        command.env.extend(self.address.options.lock_key.as_ref().map(|key| (HOLDS_KEY.to_owned(), key.to_string())));
        command.env.extend(handed_down(OF_LOCKS));
        // A run with locks tells of its own owner alone; these stay held all the same.
        let around = owners_around(None, |name| std::env::var(name).ok());
        if !around.is_empty() {
            let around: Vec<String> = around.iter().map(ToString::to_string).collect();
            command.env.insert(AROUND.to_owned(), around.join(" "));
        }
        let in_session = self.trigger == Trigger::Exec;
        Arc::new(Forwarded::new(&self.address.url, (command, in_session), self.output, self.signals.clone()))
    }

    fn assignment(&self, entropy: &Entropy) -> Assignment {
        let Task { spec, slot, .. } = &self.task;
        let capability = self.store.capability();
        // Nobody is told when a foreign script lets its lock go.
        let polls = self.address.options.lock_key.is_some();
        let now = SystemClock.now().wall;
        Assignment {
            slot: slot.clone(),
            policy: spec.policy.clone(),
            success_codes: spec.command.success_codes.clone(),
            node: self.node.clone(),
            trigger: self.trigger,
            scheduled_at: now,
            past: self.past,
            audit: self.audit.clone(),
            poll: (!capability.push || polls).then_some(capability.poll),
            seed: entropy.token(),
            locks: spec.policy.locks.as_ref().and_then(|_| locks::port(&self.store, entropy.token())),
        }
    }

    fn patience(&self) -> Patience {
        let lease_ttl = self.task.spec.policy.lease_ttl;
        let store = match self.wait {
            // A claim of ours may have been granted unheard: until its lease has expired it is there to be found.
            Wait::TakeOver => self.store_patience().max(lease_ttl),
            Wait::No | Wait::For(_) => self.store_patience(),
        };
        let record = Some(self.record_timeout.unwrap_or(lease_ttl));
        Patience { wait: self.wait, store, record, drain: Duration::ZERO }
    }

    /// What follows the run of another node. The time that it waits begins now.
    fn unfinished(&self) -> Unfinished {
        let until = match self.wait {
            Wait::For(span) => Some(SystemClock.now().mono + span),
            Wait::No | Wait::TakeOver => None,
        };
        let wait = HolderWait { until, store: self.store_patience() };
        Unfinished::of(&self.task, &self.store, &self.node, wait, self.address.options.lock_key.is_some())
    }

    /// How long a store may be silent before the command line gives up.
    fn store_patience(&self) -> Duration {
        store_patience(&self.address)
    }
}

/// The lease that this process runs under, as its environment says it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outer {
    token: Token,
    attempt: Attempt,
    /// Holds so far, the outermost included.
    holds: u32,
    trigger: Trigger,
    revision: Option<u64>,
    /// [`HOLDS_KEY`].
    key: Option<LockKey>,
}

impl Outer {
    /// From the environment, if that is of a run of this very slot.
    fn of(task: &Task, variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let own = variable("CRONWARD_JOB")? == task.slot.job().as_str()
            && variable("CRONWARD_SLOT")? == task.slot.key().to_string();
        own.then_some(())?;
        let word = variable("CRONWARD_TRIGGER").unwrap_or_default();
        let all = [Trigger::Schedule, Trigger::Retry, Trigger::Manual, Trigger::Exec];
        let trigger = all.into_iter().find(|trigger| trigger.as_str() == word).unwrap_or(Trigger::Exec);
        Some(Self {
            token: variable("CRONWARD_LEASE_TOKEN")?.parse().ok()?,
            attempt: variable("CRONWARD_ATTEMPT")?.parse().ok()?,
            holds: variable(HOLDS).and_then(|count| count.parse().ok()).unwrap_or(1),
            trigger,
            revision: variable("CRONWARD_FENCE_REVISION").and_then(|number| number.parse().ok()),
            key: variable(HOLDS_KEY).and_then(|key| key.parse().ok()),
        })
    }

    /// Whether that lease still holds the slot. Where the store does not say so within `patience` nobody knows: this process
    /// may have outlived its run, whose slot is another's by now. An error starts nothing (I8), here as in any guard.
    async fn still_holds(&self, store: &dyn Store, task: &Task, patience: Duration) -> Result<bool, StoreError> {
        let until = SystemClock.now().mono + patience;
        loop {
            match store.inspect(std::slice::from_ref(&task.slot)).await {
                Ok((_, records)) => {
                    let own = |mark: &Mark| matches!(mark, Mark::Leased { token, .. } if *token == self.token);
                    return Ok(records.iter().any(|record| own(&record.mark)));
                }
                Err(error) if error.is_transient() && SystemClock.now().mono < until => {
                    timers::until(&SystemClock, Some(SystemClock.now().mono + AGAIN)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The number of holds with one more.
    const fn deeper(&self) -> u32 {
        self.holds.saturating_add(1)
    }

    /// What the command is told: the run that it is part of.
    fn context(&self, task: &Task, node: NodeName, now: DateTime<Utc>) -> RunContext {
        RunContext {
            slot: task.slot.clone(),
            scheduled_at: now,
            attempt: self.attempt,
            max_attempts: task.spec.policy.max_attempts,
            fence: task.slot.fence(self.attempt),
            fence_revision: self.revision,
            run_id: format!("{}-{}", self.attempt, self.holds),
            node,
            trigger: self.trigger,
            deadline: None,
            token: Some(self.token),
            lease_held: true,
            // It runs under those of its outer run, whose variables are handed on.
            locks: None,
        }
    }
}

impl Guarded {
    /// The outer run under whose lease this process stands, if it does.
    async fn within_which(&self, outer: Option<Outer>) -> Result<Option<Outer>, StoreError> {
        let Some(outer) = outer else { return Ok(None) };
        let holds = outer.still_holds(&*self.store, &self.task, self.store_patience()).await?;
        Ok(holds.then_some(outer))
    }

    /// Runs the command under the lease of an outer run of the same slot. That run renews the lease, and stops this process
    /// with its own command if it must; the timeout is this one's own.
    async fn within(&self, outer: &Outer) -> Result<(Account, Verdict), Failure> {
        if let Some(key) = self.address.options.lock_key.as_ref().filter(|key| outer.key.as_ref() != Some(*key)) {
            return Err(Failure::Usage(format!(
                "--key {key}: this runs within a run of {}, which does not hold that key: give --key to the outermost exec",
                self.task.slot
            )));
        }
        if let Some(signal) = self.signals.ended_by() {
            // It came while the store was asked: nothing has begun, and nothing is to begin.
            let account = Account::new(self.task.slot.clone());
            let verdict = judge(&account, 0, Some(signal));
            return Ok((account, verdict));
        }
        let mut command = self.task.spec.command.clone();
        command.env.insert(HOLDS.to_owned(), outer.deeper().to_string());
        let context = outer.context(&self.task, self.node.clone(), SystemClock.now().wall);
        let work = self.work(command);
        let mut started = work.start(context.clone(), Renewals::none()).await;
        let (exit, timed_out) = end_of(&mut *started, &self.task.spec.policy).await;
        drop(started);
        let unwritten = work.passed_on().await;
        let account = Account::nested(&context, exit, timed_out);
        let verdict = Verdict { result: "nested", ..judge(&account, 0, None).with_unwritten(unwritten) };
        Ok((account, verdict))
    }
}

/// The end of a command, and whether its timeout brought it about: TERM, and KILL where that was not enough.
async fn end_of(started: &mut dyn Started, policy: &Policy) -> (Exit, bool) {
    let within = |span: Duration| SystemClock.now().mono + span;
    let due = policy.timeout.map(within);
    if let Some(exit) = end_by(started, due).await {
        return (exit, false);
    }
    started.terminate();
    let exit = match end_by(started, Some(within(policy.kill_after))).await {
        Some(exit) => exit,
        None => {
            started.kill();
            started.wait().await
        }
    };
    // What it left behind may have taken longer to stop than the command took.
    let in_time = exit.ended.is_some_and(|ended| due.is_some_and(|due| ended < due));
    (exit, !in_time)
}

/// The command's end, unless it is not there by then.
async fn end_by(started: &mut dyn Started, due: Option<Mono>) -> Option<Exit> {
    tokio::select! {
        biased;
        exit = started.wait() => Some(exit),
        () = timers::until(&SystemClock, due) => None,
    }
}
