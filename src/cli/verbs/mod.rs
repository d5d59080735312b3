//! The operator's commands: what changes a slot, a job or a lock in the store, from any node and with no daemon running.
//!
//! Each is one atomic step of the store and leaves its audit there: who, when, why, from which host. Each asks before it
//! changes anything, or takes `--yes`, and tells how it is undone. What each does, and what it says of that, is in
//! `admin::actions`. None of them runs a command; `trigger`, which does and is asked and audited like them, is in `guarded`.

mod confirm;
mod evict;
#[cfg(test)]
mod tests;
mod unlock;

pub(crate) use confirm::OperatorArgs;
use confirm::agree;
pub(crate) use unlock::UnlockArgs;
use unlock::unlock_in;

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::admin::lookup::{self, SlotRef};
use crate::admin::{AdminSession, PauseEndError, actions};
use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::session;
use crate::cli::store_args::StoreArgs;
use crate::cli::value_parsers;
use crate::clock::later;
use crate::job::JobName;

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

fn until(text: &str) -> Result<Until, PauseEndError> {
    value_parsers::span(text).map(Until::After).or_else(|_| {
        value_parsers::instant(text).map(Until::At).map_err(|_| PauseEndError::Unreadable(text.to_owned()))
    })
}

/// Pauses the job.
pub(crate) async fn pause(args: &PauseArgs, console: &mut Console) -> Result<(), Failure> {
    let session = session::open(&args.store, console).await?;
    pause_in(&session, args, console).await
}

async fn pause_in(session: &AdminSession, args: &PauseArgs, console: &mut Console) -> Result<(), Failure> {
    let until = args.until.map(|until| match until {
        Until::After(span) => later(session.now, span),
        Until::At(instant) => instant,
    });
    let proposal = actions::pause(session, &args.job, until, args.store.command_line(), &actions::ENGLISH).await?;
    agree(&proposal, session, &args.operator, args.output, console).await
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
    let proposal = actions::resume(session, &args.job, args.store.command_line(), &actions::ENGLISH).await?;
    agree(&proposal, session, &args.operator, args.output, console).await
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
    let proposal = actions::reset(job, &record, session.now, args.store.command_line(), &actions::ENGLISH);
    agree(&proposal, session, &args.operator, args.output, console).await
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
    let proposal = actions::mark_done(job, &record, args.store.command_line(), &actions::ENGLISH);
    agree(&proposal, session, &args.operator, args.output, console).await
}
