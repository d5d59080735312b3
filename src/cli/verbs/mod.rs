//! The operator's commands: what changes a slot, a job or a lock in the store, from any node and with no daemon running.
//!
//! Each is one atomic step of the store and leaves its audit there: who, when, why, from which host. Each asks before it
//! changes anything, or takes `--yes`, and tells how it is undone. None of them runs a command; `trigger`, which does and is
//! asked and audited like them, is in `guarded`.

mod confirm;
mod evict;
#[cfg(test)]
mod tests;
mod unlock;

pub(crate) use confirm::{Change, OperatorArgs, Undo};
pub(crate) use unlock::UnlockArgs;
use unlock::unlock_in;

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::admin::command_line::{quoted, starter};
use crate::admin::lookup::{self, SlotRef};
use crate::admin::words::{harmless, instant, relative};
use crate::admin::{AdminSession, KnownJob};
use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::session;
use crate::cli::store_args::StoreArgs;
use crate::cli::value_parsers;
use crate::clock::later;
use crate::job::{JobName, Policy};
use crate::slot::{Mark, SlotRecord};
use crate::store::Pause;

/// Takes the lease of a slot from its holder, or a lock from whoever holds it.
pub(crate) async fn unlock(args: &UnlockArgs, console: &mut Console) -> Result<(), Failure> {
    if let Some(lock) = &args.lock {
        return evict::evict(args, lock, console).await;
    }
    let session = session::open(&args.store, console).await?;
    unlock_in(&session, args, console).await
}

/// Pause a job: none of its slots starts until a given time, or until the job is resumed
///
/// A run in progress continues. Slots that end during the pause without an attempt are skipped, not missed. A second pause
/// replaces the first.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward pause billing --until 2h --reason 'database upgrade' --yes")]
pub(crate) struct PauseArgs {
    /// The job
    #[arg(value_name = "JOB")]
    pub(crate) job: JobName,
    /// When the pause ends: a duration from now like 2h, or a time like 2026-11-21T14:00:00Z [default: until resumed]
    #[arg(long, value_name = "DURATION|TIME", value_parser = until)]
    pub(crate) until: Option<Until>,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// An end, as it was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// So long from now.
    After(Duration),
    /// At this instant.
    At(DateTime<Utc>),
}

fn until(text: &str) -> Result<Until, String> {
    value_parsers::span(text).map(Until::After).or_else(|_| {
        value_parsers::instant(text).map(Until::At).map_err(|_| {
            format!("{text:?} is neither a duration nor a time: write one like 2h, or like 2026-11-21T14:00:00Z")
        })
    })
}

/// Pauses the job.
pub(crate) async fn pause(args: &PauseArgs, console: &mut Console) -> Result<(), Failure> {
    let session = session::open(&args.store, console).await?;
    pause_in(&session, args, console).await
}

async fn pause_in(session: &AdminSession, args: &PauseArgs, console: &mut Console) -> Result<(), Failure> {
    let job = &session.catalog.find(&args.job)?.entry.name;
    let until = args.until.map(|until| match until {
        Until::After(span) => later(session.now, span),
        Until::At(instant) => instant,
    });
    if let Some(past) = until.filter(|until| *until <= session.now) {
        let (past, now) = (instant(past), instant(session.now));
        return Err(Failure::Usage(format!(
            "--until {past} has passed: the store's clock shows {now}; write a later time"
        )));
    }
    let before = in_force(session, job).await?;
    let replaced = before
        .as_ref()
        .map(|pause| format!("; this replaces the pause by {} on {}", pause.audit.who, pause.audit.host));
    let change = Change {
        verb: "pause",
        target: job.to_string(),
        effect: match until {
            Some(until) => {
                format!("no slot of the job starts until {} ({})", instant(until), relative(session.now, until))
            }
            None => "no slot of the job starts until the job is resumed".to_owned(),
        } + &replaced.unwrap_or_default(),
        needless: "the job is already paused like this".to_owned(),
        undo: Undo::By(args.store.command(before.map_or_else(|| format!("resume {job}"), |pause| again(job, &pause)))),
        store: args.store.clone(),
    };
    if !change.confirm(&args.operator, console)? {
        return Ok(());
    }
    let answer = session.store.pause(job, until, &args.operator.audit("pause")).await?;
    change.tell(answer, args.output, console)
}

/// The pause that is in force. Somebody else's command may still come between this look and the step of the store: whoever is
/// asked agrees to what was seen.
async fn in_force(session: &AdminSession, job: &JobName) -> Result<Option<Pause>, Failure> {
    let pauses = session.store.pauses().await?;
    let own = pauses.into_iter().find(|(name, _)| name == job).map(|(_, pause)| pause);
    Ok(own.filter(|pause| pause.remaining(session.now).is_some()))
}

/// The words that make such a pause.
fn again(job: &JobName, pause: &Pause) -> String {
    let until = pause.until.map(|until| format!(" --until {}", instant(until))).unwrap_or_default();
    let why = harmless(&pause.audit.why);
    let why = if why.is_empty() { String::new() } else { format!(" --reason {}", quoted(&why)) };
    format!("pause {job}{until}{why}")
}

/// End the pause of a job: its current slot starts at once if it is due and not done
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward resume billing --reason 'upgrade is over' --yes")]
pub(crate) struct ResumeArgs {
    /// The job
    #[arg(value_name = "JOB")]
    pub(crate) job: JobName,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Resumes the job.
pub(crate) async fn resume(args: &ResumeArgs, console: &mut Console) -> Result<(), Failure> {
    let session = session::open(&args.store, console).await?;
    resume_in(&session, args, console).await
}

async fn resume_in(session: &AdminSession, args: &ResumeArgs, console: &mut Console) -> Result<(), Failure> {
    let job = &session.catalog.find(&args.job)?.entry.name;
    let before = in_force(session, job).await?;
    let change = Change {
        verb: "resume",
        target: job.to_string(),
        effect: "the slots of the job start again".to_owned(),
        needless: "the job is not paused".to_owned(),
        undo: Undo::By(args.store.command(before.map_or_else(|| format!("pause {job}"), |pause| again(job, &pause)))),
        store: args.store.clone(),
    };
    if !change.confirm(&args.operator, console)? {
        return Ok(());
    }
    let answer = session.store.resume(job, &args.operator.audit("resume")).await?;
    change.tell(answer, args.output, console)
}

/// Reset a slot so that it can run again: its attempts no longer count, a retry wait ends, a done marker and a verdict are removed
///
/// Nodes run the slot again until its end; after the end only `cronward trigger J@S --past` runs it. Attempt numbers keep
/// rising. A slot whose lease a node holds is left unchanged.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward reset billing@2026-11-21T14Z --reason 'disk is free again' --yes")]
pub(crate) struct ResetArgs {
    /// The slot: billing@2026-11-21T14Z, billing for the current slot, billing@-1 for the previous slot
    #[arg(value_name = "JOB[@SLOT]")]
    pub(crate) slot: SlotRef,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Resets the slot.
pub(crate) async fn reset(args: &ResetArgs, console: &mut Console) -> Result<(), Failure> {
    let session = session::open(&args.store, console).await?;
    reset_in(&session, args, console).await
}

async fn reset_in(session: &AdminSession, args: &ResetArgs, console: &mut Console) -> Result<(), Failure> {
    let (job, record) = lookup::find(session, &args.slot).await?;
    let slot = &record.slot;
    let mark = args.store.command(format_args!("mark-done {slot}"));
    let change = Change {
        verb: "reset",
        target: slot.to_string(),
        effect: effect_of_reset(&record, job, session, &args.store),
        needless: "nothing has happened in the slot".to_owned(),
        undo: Undo::Not(format!("cannot be undone; to keep nodes from running the slot: {mark}")),
        store: args.store.clone(),
    };
    if !change.confirm(&args.operator, console)? {
        return Ok(());
    }
    let answer = session.store.reset(slot, &args.operator.audit("reset")).await?;
    change.tell(answer, args.output, console)
}

/// What the reset does to this slot, in words.
fn effect_of_reset(record: &SlotRecord, job: &KnownJob, session: &AdminSession, store: &StoreArgs) -> String {
    let mut parts = vec![match record.used() {
        0 => "the slot had no attempts".to_owned(),
        1 => "1 attempt no longer counts".to_owned(),
        used => format!("{used} attempts no longer count"),
    }];
    if matches!(record.mark, Mark::Done(_)) {
        parts.push("the slot is no longer done".to_owned());
    }
    let end = instant(record.slot.end());
    parts.push(match (starter(job.entry.origin), record.slot.end() > session.now) {
        (None, true) => "nodes run the slot again at once".to_owned(),
        (None, false) => {
            let trigger = format!("trigger {} --past", record.slot);
            let trigger = store.command_line().command_of_file(trigger, job.spec.is_some());
            format!("the slot ended at {end}; to run it now: {trigger}")
        }
        (Some(starts), true) => format!("the slot runs when {starts} again"),
        (Some(_), false) => format!("the slot ended at {end}, so nothing runs it any more"),
    });
    parts.join("; ")
}

/// Mark a slot as done without a run: no node starts the slot, and the slot is not a failure
///
/// For work that was done manually or is not needed. A slot whose lease a node holds is left unchanged.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward mark-done billing@2026-11-21T14Z --reason 'done manually' --yes")]
pub(crate) struct MarkDoneArgs {
    /// The slot: billing@2026-11-21T14Z, billing for the current slot, billing@-1 for the previous slot
    #[arg(value_name = "JOB[@SLOT]")]
    pub(crate) slot: SlotRef,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Marks the slot.
pub(crate) async fn mark_done(args: &MarkDoneArgs, console: &mut Console) -> Result<(), Failure> {
    let session = session::open(&args.store, console).await?;
    mark_done_in(&session, args, console).await
}

async fn mark_done_in(session: &AdminSession, args: &MarkDoneArgs, console: &mut Console) -> Result<(), Failure> {
    let (job, record) = lookup::find(session, &args.slot).await?;
    let slot = &record.slot;
    let change = Change {
        verb: "mark-done",
        target: slot.to_string(),
        effect: "the slot counts as done, and no node runs it any more".to_owned(),
        needless: "the slot is already done".to_owned(),
        undo: Undo::By(args.store.command(format_args!("reset {slot}"))),
        store: args.store.clone(),
    };
    if !change.confirm(&args.operator, console)? {
        return Ok(());
    }
    // The registry does not know the file's TTL; the default one outlives the slot too.
    let policy = job.spec.as_ref().map_or_else(Policy::default, |spec| spec.policy.clone());
    let audit = args.operator.audit("mark_done");
    let answer = session.store.mark_done(slot, &audit, policy.done_ttl_for(slot)).await?;
    change.tell(answer, args.output, console)
}
