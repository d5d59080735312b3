//! `cronward trigger J[@S]`: runs a job's command here and now, guarded like any other run of the slot.

use std::time::Duration;

use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::guarded::run::{Guarded, finish, listen, node_name};
use crate::cli::guarded::task::{Task, timetable};
use crate::cli::guarded::verdict::{Verdict, judge};
use crate::cli::lookup;
use crate::cli::reference::SlotRef;
use crate::cli::session::Session;
use crate::cli::store_args::StoreArgs;
use crate::cli::{ExitCode, values};
use crate::drive::Account;
use crate::job::NodeName;
use crate::slot::Trigger;

/// Run a job's command here and now, in the foreground, under the lease of its slot
///
/// The slot must be free: one that is held, done or used up is refused with the verb that mends it. The file must know the
/// job, since nothing else has its command.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward trigger billing --config /etc/cronward/jobs.toml")]
pub(crate) struct TriggerArgs {
    /// The slot: billing for the current one, billing@2026-11-21T14Z, billing@-1 for the one before
    #[arg(value_name = "JOB[@SLOT]")]
    pub(crate) slot: SlotRef,
    /// Wait this long for a slot that another node holds
    #[arg(long, value_name = "SPAN", value_parser = values::span)]
    pub(crate) wait: Option<Duration>,
    /// This node's name [default: the file's]
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<NodeName>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Runs the slot.
pub(crate) async fn trigger(args: &TriggerArgs, console: &mut Console) -> Result<(), Failure> {
    let file = args.store.read_file(console)?;
    let session = Session::open(&args.store, console).await?;
    let (job, record) = lookup::find(&session, &args.slot).await?;
    let Some(spec) = &job.spec else {
        return Err(Failure::Usage(format!(
            "the file does not know job {}, so there is no command to run: name the file with --config",
            job.entry.name
        )));
    };
    let task = Task { spec: (**spec).clone(), timetable: timetable(spec)?, slot: record.slot.clone(), declared: true };
    let Session { store, address, .. } = session;
    let node = args.node.clone().unwrap_or_else(|| node_name(file.as_ref()));
    let signals = listen()?;
    let guarded =
        Guarded { task, address, store, node, signals: signals.clone(), trigger: Trigger::Manual, wait: args.wait };
    let account = guarded.run().await?;
    let verdict = refusal(&account).unwrap_or_else(|| judge(&account, 0, signals.ended_by()));
    finish(&account, &verdict, None, console)
}

/// A slot that cannot be run now, with the way out: a person waits for it, so it is not silent.
fn refusal(account: &Account) -> Option<Verdict> {
    if !account.runs.is_empty() || account.store_error.is_some() {
        return None;
    }
    let slot = &account.slot;
    let by = account.by.as_ref().map_or_else(|| "another node".to_owned(), |node| format!("node {node}"));
    let (code, why) = match account.answer? {
        "held" => (ExitCode::TryAgain, format!("{by} holds it: wait with --wait, or `cronward unlock {slot}`")),
        "blocked" => (ExitCode::TryAgain, format!("an older slot of the job still runs on {by}: wait with --wait")),
        "backoff" => {
            (ExitCode::TryAgain, format!("an attempt has just failed: wait with --wait, or `cronward reset {slot}`"))
        }
        "done" => (ExitCode::StoreRefuses, format!("{by} has done it: `cronward reset {slot}` lets it run again")),
        "exhausted" => {
            (ExitCode::StoreRefuses, format!("its attempts are used up: `cronward reset {slot}` forgives them"))
        }
        "paused" => (ExitCode::StoreRefuses, format!("the job is paused: `cronward resume {}`", slot.job())),
        "closed" => (ExitCode::StoreRefuses, "it is over".to_owned()),
        _ => return None,
    };
    Some(Verdict { code: code as u8, result: account.answer?, told: vec![format!("{slot} was not run: {why}")] })
}
