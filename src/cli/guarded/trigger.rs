//! `cronward trigger J[@S]`: runs a job's command here and now, guarded like any other run of the slot.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::admin::actions::{self, RunPlace};
use crate::admin::command_line::starter;
use crate::admin::lookup::{self, SlotRef};
use crate::admin::{AdminSession, KnownJob};
use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::guarded::around::waits_for_itself;
use crate::cli::guarded::report_file::ReportFile;
use crate::cli::guarded::run::{Guarded, listen, node_name};
use crate::cli::guarded::task::Task;
use crate::cli::guarded::verdict::{Telling, Verdict, finish, judge, not_begun};
use crate::cli::locks::kept_for;
use crate::cli::session;
use crate::cli::store_args::StoreArgs;
use crate::cli::verbs::OperatorArgs;
use crate::cli::{ExitCode, value_parsers};
use crate::clock::later;
use crate::drive::{Account, Wait};
use crate::exec::Output;
use crate::job::NodeName;
use crate::machine::End;
use crate::reply::ClaimAnswer;
use crate::slot::{Slot, Trigger};
use crate::store::{Store, StoreError};

/// What is told of a slot whose record may be gone.
const FORGOTTEN: &str = "whether the slot was done before is no longer known";

/// Run a job's command now on this machine, in the foreground, under the lease of its slot
///
/// The slot must be free. A slot that is held, done or exhausted is refused, and the message names the command that fixes
/// this. A slot that has ended needs --past. The file must contain the job, because only the file has the command. The store
/// records who triggered the run, from which host and why. The command uses this terminal's stdout and stderr, and stdin
/// unless it is a terminal; with --json the command's stdout goes to stderr.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward trigger billing --reason 'the customer asks' --yes")]
pub(crate) struct TriggerArgs {
    /// The slot: billing for the current slot, billing@2026-11-21T14Z, billing@-1 for the previous slot
    #[arg(value_name = "JOB[@SLOT]")]
    pub(crate) slot: SlotRef,
    /// Also run a slot that has ended; such a slot runs in no other way
    #[arg(long)]
    pub(crate) past: bool,
    /// Wait up to this long for a slot whose lease another node holds
    #[arg(long, value_name = "DURATION", value_parser = value_parsers::span)]
    pub(crate) wait: Option<Duration>,
    /// Wait at most this long for the store to record how the command ended [default: the lease TTL]
    #[arg(long, value_name = "DURATION", value_parser = value_parsers::span)]
    pub(crate) record_timeout: Option<Duration>,
    /// This node's name [default: the file's]
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<NodeName>,
    /// Write what happened to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Runs the slot.
pub(crate) async fn trigger(args: &TriggerArgs, console: &mut Console) -> Result<(), Failure> {
    let file = args.store.read_file(console)?;
    let (session, address) = session::open_to_run(&args.store, console).await?;
    let (job, record) = lookup::find(&session, &args.slot).await?;
    let Some(spec) = &job.spec else { return Err(no_command(job)) };
    let task = Task::of_file(spec, record.slot.clone())?;
    let AdminSession { store, now, retention, .. } = session;
    kept_for(&task.spec, &store, &address)?;
    if args.past && later(task.slot.end(), retention) <= now {
        console
            .note(format_args!("cronward: {} is older than the records that the store keeps: {FORGOTTEN}", task.slot));
    }
    let refused = match not_begun(&task.slot, now) {
        Some(verdict) => Some(verdict),
        None => waits_for_itself(&task, &store, |name| std::env::var(name).ok()).await,
    };
    if let Some(verdict) = refused {
        let report = args.report.as_deref().map(ReportFile::begin).transpose()?;
        let telling = Telling { report, json: args.output.json, undo: None };
        return finish(&Account::new(task.slot), &verdict, telling, console);
    }
    let change = actions::trigger(&task.slot, now, RunPlace::Here, args.store.command_line(), &actions::ENGLISH).change;
    if !change.confirm(&args.operator, console)? {
        return Ok(());
    }
    let report = args.report.as_deref().map(ReportFile::begin).transpose()?;
    let node = args.node.clone().unwrap_or_else(|| node_name(file.as_ref()));
    let signals = listen()?;
    let (recorder, by) = (Arc::clone(&store), node.clone());
    let guarded = Guarded {
        task,
        address,
        store,
        node,
        signals: signals.clone(),
        trigger: Trigger::Manual,
        past: args.past,
        audit: Some(args.operator.audit("trigger")),
        wait: args.wait.map_or(Wait::No, Wait::For),
        record_timeout: args.record_timeout,
        output: if args.output.json { Output::ToStderr } else { Output::PassThrough },
    };
    let (account, unwritten) = guarded.run().await?;
    let has_failed = args.past && !account.runs.is_empty() && account.end != Some(End::Done);
    if has_failed && let Err(error) = close_again(&*recorder, &account.slot, &by).await {
        console.note(format_args!("cronward: the verdict of {} was not recorded: {error}", account.slot));
    }
    // Whoever ends the wait knows why nothing was run.
    let ended_by = signals.ended_by();
    let refusal = if ended_by.is_none() { refusal(&account, args.wait.is_some(), &args.store) } else { None };
    let verdict = refusal.unwrap_or_else(|| judge(&account, 0, ended_by)).with_unwritten(unwritten);
    let undo = (!account.runs.is_empty()).then_some(change.undo);
    finish(&account, &verdict, Telling { report, json: args.output.json, undo }, console)
}

/// Records once more that a past slot failed, where a reset took its verdict: no node looks at it any more, and what is left of its
/// attempts nobody makes by itself. Otherwise whoever closes the slot tells the verdict, too.
async fn close_again(store: &dyn Store, slot: &Slot, by: &NodeName) -> Result<(), StoreError> {
    let (_, records) = store.inspect(std::slice::from_ref(slot)).await?;
    if records.iter().any(|record| record.was_reset_after(slot.end())) {
        store.close(slot, 1, by).await?;
    }
    Ok(())
}

/// A job of the registry alone: whoever made it known has its command.
fn no_command(job: &KnownJob) -> Failure {
    let name = &job.entry.name;
    Failure::Usage(match starter(job.entry.origin) {
        None => {
            format!("job {name} is not in the file, so there is no command to run: name the file with --config")
        }
        Some(starts) => {
            format!(
                "job {name} is in no file: it runs when {starts}; to trigger it, name a file that contains it with --config"
            )
        }
    })
}

/// A slot that cannot be run now, with the way out: a person waits for it, so it is not silent.
fn refusal(account: &Account, has_waited: bool, store: &StoreArgs) -> Option<Verdict> {
    if !account.runs.is_empty() || account.store_error.is_some() {
        return None;
    }
    let slot = &account.slot;
    let (unlock, reset) = (store.command(format_args!("unlock {slot}")), store.command(format_args!("reset {slot}")));
    let by = account.by.as_ref().map_or_else(|| "another node".to_owned(), |node| format!("node {node}"));
    let answer = account.answer?;
    if let Some(held) = &account.queued {
        let way_out = if has_waited { "" } else { "; --wait waits for it" };
        let told = vec![format!("{slot} was not run: {held}{way_out}")];
        return Some(Verdict { code: ExitCode::TryAgain as u8, result: "locked", told });
    }
    let (code, why) = match answer {
        ClaimAnswer::Held => (
            ExitCode::TryAgain,
            format!("{by} holds the lease: wait with --wait, or release the lease with `{unlock}`"),
        ),
        ClaimAnswer::Blocked => (ExitCode::TryAgain, format!("another slot of the job runs on {by}: wait with --wait")),
        ClaimAnswer::Backoff => (
            ExitCode::TryAgain,
            format!("an attempt has just failed: wait with --wait, or end the wait with `{reset}`"),
        ),
        ClaimAnswer::Done => {
            (ExitCode::StoreRefuses, format!("{by} has completed the slot: to run it again, first `{reset}`"))
        }
        ClaimAnswer::Exhausted => {
            (ExitCode::StoreRefuses, format!("the attempts are exhausted: to allow more, `{reset}`"))
        }
        ClaimAnswer::Paused => {
            let resume = store.command(format_args!("resume {}", slot.job()));
            (ExitCode::StoreRefuses, format!("the job is paused: to resume it, `{resume}`"))
        }
        ClaimAnswer::Closed => (ExitCode::StoreRefuses, "the slot has ended: add --past to run it anyway".to_owned()),
        ClaimAnswer::Claimed | ClaimAnswer::Early | ClaimAnswer::Unknown => return None,
    };
    Some(Verdict { code: code as u8, result: answer.as_str(), told: vec![format!("{slot} was not run: {why}")] })
}
