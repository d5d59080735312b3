//! `cronward exec`: from the command line to the exit code.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::gethostname;

use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::guarded::args::ExecArgs;
use crate::cli::guarded::forward::{Forwarded, Signals};
use crate::cli::guarded::nested::{HOLDS, Outer};
use crate::cli::guarded::report::Report;
use crate::cli::guarded::task::Task;
use crate::cli::guarded::verdict::{Verdict, judge};
use crate::cli::session::connect;
use crate::cli::store_args::StoreAddress;
use crate::clock::{Clock, SystemClock};
use crate::config::Config;
use crate::drive::{Account, Entropy, Once, Patience, Work, older_slots};
use crate::exec::{Launcher, Output};
use crate::guard::Assignment;
use crate::job::NodeName;
use crate::observe::FanOut;
use crate::slot::Trigger;
use crate::store::{self, JobEntry, Store};

/// A store that hangs or is away for a moment is asked again this often before the command line gives up.
const STORE_TRIES: u32 = 4;

/// Guards one command.
pub(crate) async fn exec(args: &ExecArgs, console: &mut Console) -> Result<(), Failure> {
    let file = args.store.read_file(console)?;
    let address = args.store.address(file.as_ref(), console)?;
    let task = Task::of_exec(args, file.as_ref(), SystemClock.now().wall)?;
    let report = args.report.as_deref().map(Report::begin).transpose()?;
    let node = args.node.clone().unwrap_or_else(|| node_name(file.as_ref()));
    let store = connect(&address).await?;
    let signals = listen()?;
    let guarded = Guarded { task, address, store, node, signals, trigger: Trigger::Exec, wait: args.wait };
    let (account, verdict) = match Outer::of(&guarded.task, |name| std::env::var(name).ok()) {
        Some(outer) if outer.still_holds(&*guarded.store, &guarded.task).await => guarded.within(&outer).await,
        _ => {
            let signals = guarded.signals.clone();
            let account = guarded.run().await?;
            let verdict = judge(&account, args.skip_exit_code, signals.ended_by());
            (account, verdict)
        }
    };
    finish(&account, &verdict, report, console)
}

/// Says what there is to say, and ends with the verdict's code.
pub(super) fn finish(
    account: &Account,
    verdict: &Verdict,
    report: Option<Report>,
    console: &mut Console,
) -> Result<(), Failure> {
    verdict.told.iter().for_each(|line| console.note(format_args!("cronward: {line}")));
    if let Some(Err(error)) = report.map(|report| report.finish(account, verdict)) {
        console.note(format_args!("cronward: {error}"));
    }
    if verdict.code == 0 { Ok(()) } else { Err(Failure::Child(verdict.code)) }
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
    pub(super) wait: Option<Duration>,
}

impl Guarded {
    /// Claims the slot, runs the command, settles.
    pub(super) async fn run(self) -> Result<Account, Failure> {
        let entropy =
            Entropy::from_system().map_err(|error| Failure::Internal(format!("no random source: {error}")))?;
        let assignment = self.assignment(&entropy);
        let registration = self.registration();
        let once = Once {
            assignment,
            work: self.work(self.task.spec.command.clone()),
            store: Arc::clone(&self.store),
            clock: Arc::new(SystemClock),
            observer: Arc::new(FanOut(Vec::new())),
            patience: self.patience(),
        };
        let account = once.until_ended(self.signals.ended.clone()).await;
        if !account.runs.is_empty() {
            register(&*self.store, registration).await;
        }
        Ok(account)
    }

    /// Runs the command under the lease of an outer run of the same slot.
    async fn within(self, outer: &Outer) -> (Account, Verdict) {
        let mut command = self.task.spec.command.clone();
        command.env.insert(HOLDS.to_owned(), outer.deeper().to_string());
        let context = outer.context(&self.task, self.node.clone(), SystemClock.now().wall);
        let account = Account::nested(&context, self.work(command).start(context.clone()).await.wait().await);
        let verdict = Verdict { result: "nested", ..judge(&account, 0, None) };
        (account, verdict)
    }

    fn work(&self, command: crate::job::CommandSpec) -> Arc<dyn Work> {
        let launcher = Launcher::new(PathBuf::from("/proc/self/exe"), Output::PassThrough);
        let secrets = store::secrets(&self.address.url);
        let launcher = secrets.iter().fold(launcher, |launcher, secret| launcher.hiding(secret));
        Arc::new(Forwarded { launcher, command, signals: self.signals.clone() })
    }

    fn assignment(&self, entropy: &Entropy) -> Assignment {
        let Task { spec, timetable, slot, .. } = &self.task;
        let capability = self.store.capability();
        Assignment {
            slot: slot.clone(),
            policy: spec.policy.clone(),
            success_codes: spec.command.success_codes.clone(),
            node: self.node.clone(),
            trigger: self.trigger,
            scheduled_at: SystemClock.now().wall,
            not_during: older_slots(timetable, &spec.policy, slot),
            poll: (!capability.push).then_some(capability.poll),
            seed: entropy.token(),
        }
    }

    fn patience(&self) -> Patience {
        Patience {
            wait: self.wait.unwrap_or_default(),
            store: self.address.options.op_timeout * STORE_TRIES,
            drain: Duration::ZERO,
        }
    }

    /// The registry's entry of a job that no file knows, so that `cronward attempts` does.
    fn registration(&self) -> Option<JobEntry> {
        let entry = || JobEntry { enabled: false, ..JobEntry::of(&self.task.spec, SystemClock.now().wall) };
        (!self.task.declared).then(entry)
    }
}

/// Makes the registry know a job that it does not know yet. What a daemon said of it is left as it is; and a store that does
/// not answer has been told of already.
async fn register(store: &dyn Store, entry: Option<JobEntry>) {
    let Some(entry) = entry else { return };
    let Ok(known) = store.jobs().await else { return };
    if known.iter().all(|job| job.name != entry.name) {
        let _ = store.register(&[entry]).await;
    }
}
