//! `cronward exec`: from the command line to the exit code.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::gethostname;

use crate::cli::ExitCode;
use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::guarded::args::ExecArgs;
use crate::cli::guarded::forward::{Forwarded, Signals};
use crate::cli::guarded::nested::{HOLDS_KEY, Outer};
use crate::cli::guarded::report::{self, Report};
use crate::cli::guarded::task::Task;
use crate::cli::guarded::verdict::{Verdict, judge, not_begun};
use crate::cli::session::connect;
use crate::cli::store_args::StoreAddress;
use crate::clock::{Clock, SystemClock};
use crate::config::Config;
use crate::drive::{Account, Entropy, Once, Patience, Traces, Wait};
use crate::exec::{Launcher, Output};
use crate::guard::Assignment;
use crate::job::{CommandSpec, NodeName};
use crate::observe::FanOut;
use crate::slot::{Audit, Slot, Trigger};
use crate::store::{self, Store};

/// A store that hangs or is away for a moment is asked again this often before the command line gives up.
const STORE_TRIES: u32 = 4;

/// Guards one command. Nothing but the command says anything where all is as it should be: cron mails every word.
pub(crate) async fn exec(args: &ExecArgs, console: &mut Console) -> Result<(), Failure> {
    let file = args.store.read_job(&args.job, console)?;
    let mut address = args.store.address_unwarned(file.as_ref())?;
    address.options.lock_key.clone_from(&args.key);
    let task = Task::of_exec(args, file.as_ref(), SystemClock.now().wall)?;
    let signals = listen()?;
    let report = args.report.as_deref().map(Report::begin).transpose()?;
    let telling = Telling { report, ..Telling::default() };
    let node = args.node.clone().unwrap_or_else(|| node_name(file.as_ref()));
    let store = match connect(&address).await {
        Ok(store) => store,
        Err(failure) => return Err(not_opened(task.slot, failure, telling, console)),
    };
    let (output, trigger) = (Output::PassThrough, Trigger::Exec);
    let (wait, record_timeout) = (args.waits(), args.record_timeout);
    let (past, audit) = (false, None);
    let guarded = Guarded { task, address, store, node, signals, trigger, past, audit, wait, record_timeout, output };
    let outer = Outer::of(&guarded.task, |name| std::env::var(name).ok());
    let (account, verdict) = match guarded.within_which(outer).await {
        Ok(Some(outer)) => guarded.within(&outer).await?,
        Ok(None) => {
            let signals = guarded.signals.clone();
            let account = guarded.run().await?;
            let early = account.answer == Some("early");
            let future = not_begun(&account.slot, SystemClock.now().wall).filter(|_| early);
            let verdict = future.unwrap_or_else(|| judge(&account, args.skip_exit_code, signals.ended_by()));
            (account, verdict)
        }
        Err(error) => {
            let unknown = Some((error.kind, error.to_string()));
            let account = Account { store_error: unknown, ..Account::new(guarded.task.slot.clone()) };
            let verdict = judge(&account, args.skip_exit_code, None);
            (account, verdict)
        }
    };
    finish(&account, &verdict, telling, console)
}

/// Where it is told what happened, besides stderr.
#[derive(Debug, Default)]
pub(super) struct Telling {
    pub(super) report: Option<Report>,
    /// On stdout, too.
    pub(super) json: bool,
    /// How far it can be taken back.
    pub(super) undo: Option<String>,
}

/// Says what there is to say, and ends with the verdict's code.
pub(super) fn finish(
    account: &Account,
    verdict: &Verdict,
    telling: Telling,
    console: &mut Console,
) -> Result<(), Failure> {
    verdict.told.iter().for_each(|line| console.note(format_args!("cronward: {line}")));
    if let Some(undo) = &telling.undo {
        console.note(format_args!("cronward: to undo: {undo}"));
    }
    let view = report::view(account, verdict, telling.undo.as_deref());
    if let Some(Err(error)) = telling.report.map(|report| report.finish(&view)) {
        console.note(format_args!("cronward: {error}"));
    }
    if telling.json {
        console.json(&view)?;
    }
    if verdict.code == 0 { Ok(()) } else { Err(Failure::Child(verdict.code)) }
}

/// A store that cannot even be opened is reported like one that refuses; whoever called is told by the failure itself.
fn not_opened(slot: Slot, failure: Failure, telling: Telling, console: &mut Console) -> Failure {
    let code = failure.exit_code();
    let result = if code == ExitCode::TryAgain { "store_unavailable" } else { "store_refuses" };
    let verdict = Verdict { code: code as u8, result, told: vec![failure.to_string()] };
    let account = Account::new(slot);
    let view = report::view(&account, &verdict, None);
    if let Some(Err(error)) = telling.report.map(|report| report.finish(&view)) {
        console.note(format_args!("cronward: {error}"));
    }
    failure
}

/// The file's name for this machine, or the host's.
pub(super) fn node_name(file: Option<&Config>) -> NodeName {
    let host = || gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    file.map_or_else(|| NodeName::nearest(&host()), |config| config.node.name.clone())
}

pub(super) fn listen() -> Result<Signals, Failure> {
    Signals::listen().map_err(|error| Failure::Internal(format!("cannot listen for signals: {error}")))
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
    /// Claims the slot, runs the command, settles.
    pub(super) async fn run(self) -> Result<Account, Failure> {
        let entropy =
            Entropy::from_system().map_err(|error| Failure::Internal(format!("no random source: {error}")))?;
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
            observer: Arc::new(FanOut(Vec::new())),
            patience: self.patience(),
        };
        let account = once.until_noted(traces, self.signals.ended.clone()).await;
        work.passed_on().await;
        Ok(account)
    }

    pub(super) fn work(&self, mut command: CommandSpec) -> Arc<Forwarded> {
        // For one that is nested in it.
        command.env.extend(self.address.options.lock_key.as_ref().map(|key| (HOLDS_KEY.to_owned(), key.to_string())));
        let launcher = Launcher::new(PathBuf::from("/proc/self/exe"), self.output);
        let secrets = store::secrets(&self.address.url);
        let launcher = secrets.iter().fold(launcher, |launcher, secret| launcher.hiding(secret));
        Arc::new(Forwarded { launcher, command, signals: self.signals.clone() })
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

    /// How long a store may be silent before the command line gives up.
    pub(super) fn store_patience(&self) -> Duration {
        self.address.options.op_timeout * STORE_TRIES
    }
}
