//! `cronward reset`, `unlock` and `mark-done`: what is done to one slot.

use crate::cli::catalog::KnownJob;
use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::lookup;
use crate::cli::pasted::starter;
use crate::cli::reference::SlotRef;
use crate::cli::session::Session;
use crate::cli::store_args::StoreArgs;
use crate::cli::verbs::deed::{Deed, OperatorArgs};
use crate::job::Policy;
use crate::slot::{Mark, SlotRecord};
use crate::store::Intervention;

/// Let a slot begin anew: forgive its attempts, end a wait, take back a done marker and a verdict
///
/// Nodes try the slot again while it lasts; once it is over, only `cronward trigger J@S --past` runs it. Attempt numbers go
/// on rising. A slot that a node holds is left alone.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward reset billing@2026-11-21T14Z --reason 'disk is free again' --yes")]
pub(crate) struct ResetArgs {
    /// The slot: billing@2026-11-21T14Z, billing for the current one, billing@-1 for the one before
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
    let session = Session::open(&args.store, console).await?;
    reset_in(&session, args, console).await
}

pub(super) async fn reset_in(session: &Session, args: &ResetArgs, console: &mut Console) -> Result<(), Failure> {
    let (job, record) = lookup::find(session, &args.slot).await?;
    let slot = &record.slot;
    let mark = args.store.command(format_args!("mark-done {slot}"));
    let deed = Deed {
        verb: "reset",
        target: slot.to_string(),
        effect: effect_of_reset(&record, job, session, &args.store),
        needless: "nothing has happened in it".to_owned(),
        undo: format!("`{mark}` keeps every node from running it; what was forgiven stays forgiven"),
        store: args.store.clone(),
    };
    if !deed.confirm(&args.operator, console)? {
        return Ok(());
    }
    let answer = session.store.reset(slot, &args.operator.audit("reset")).await?;
    deed.tell(answer, args.output, console)
}

/// What the reset does to this slot, in words.
fn effect_of_reset(record: &SlotRecord, job: &KnownJob, session: &Session, store: &StoreArgs) -> String {
    let mut parts = vec![match record.used() {
        1 => "1 attempt is forgiven".to_owned(),
        used => format!("{used} attempts are forgiven"),
    }];
    if matches!(record.mark, Mark::Done(_)) {
        parts.push("it is no longer done".to_owned());
    }
    parts.push(match (starter(job.entry.origin), record.slot.end() > session.now) {
        (None, true) => "nodes try it again at once".to_owned(),
        (None, false) => {
            let trigger = format!("trigger {} --past", record.slot);
            format!("it is over, so only `{}` runs it", store.command_of_file(trigger, job.spec.is_some()))
        }
        (Some(starts), true) => format!("it runs when {starts} again"),
        (Some(_), false) => "it is over, so nothing runs it any more".to_owned(),
    });
    parts.join(", ")
}

/// Take the lease of a slot from the node that holds it
///
/// The holder's next renewal is answered "lost": with on_lost = "kill" it stops its command, otherwise the command goes on,
/// and two runs may overlap. The attempt counts. A foreign key that is held with the lease (exec --key) is deleted, unless
/// somebody else has it by now.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward unlock billing@2026-11-21T14Z --reason 'node b is gone' --yes")]
pub(crate) struct UnlockArgs {
    /// The slot: billing@2026-11-21T14Z, billing for the current one, billing@-1 for the one before
    #[arg(value_name = "JOB[@SLOT]")]
    pub(crate) slot: SlotRef,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Unlocks the slot.
pub(crate) async fn unlock(args: &UnlockArgs, console: &mut Console) -> Result<(), Failure> {
    let session = Session::open(&args.store, console).await?;
    unlock_in(&session, args, console).await
}

pub(super) async fn unlock_in(session: &Session, args: &UnlockArgs, console: &mut Console) -> Result<(), Failure> {
    let (_, record) = lookup::find(session, &args.slot).await?;
    let deed = Deed {
        verb: "unlock",
        target: record.slot.to_string(),
        effect: effect_of_unlock(&record),
        needless: "nobody holds it".to_owned(),
        undo: "a lease cannot be given back; if its command is still alive, it goes on without one".to_owned(),
        store: args.store.clone(),
    };
    // The store is not asked either: nobody agreed to take a lease that begins in this moment.
    if !matches!(record.mark, Mark::Leased { .. }) {
        return deed.tell(Intervention::Unchanged, args.output, console);
    }
    if !deed.confirm(&args.operator, console)? {
        return Ok(());
    }
    let answer = session.store.unlock(&record.slot, &args.operator.audit("unlock")).await?;
    deed.tell(answer, args.output, console)
}

/// What the unlock does to this slot, in words.
fn effect_of_unlock(record: &SlotRecord) -> String {
    match &record.mark {
        Mark::Leased { by, .. } => {
            format!("attempt {} on node {} loses its lease, and others may start", by.attempt, by.node)
        }
        Mark::Free | Mark::Backoff { .. } | Mark::Done(_) => "nobody loses a lease".to_owned(),
    }
}

/// Mark a slot as done without a run: no node starts it, and it is no failure
///
/// For work that was done by hand, or that need not be done. A slot that a node holds is left alone.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward mark-done billing@2026-11-21T14Z --reason 'done by hand' --yes")]
pub(crate) struct MarkDoneArgs {
    /// The slot: billing@2026-11-21T14Z, billing for the current one, billing@-1 for the one before
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
    let session = Session::open(&args.store, console).await?;
    mark_done_in(&session, args, console).await
}

pub(super) async fn mark_done_in(session: &Session, args: &MarkDoneArgs, console: &mut Console) -> Result<(), Failure> {
    let (job, record) = lookup::find(session, &args.slot).await?;
    let slot = &record.slot;
    let deed = Deed {
        verb: "mark-done",
        target: slot.to_string(),
        effect: "no node runs it any more, and it counts as done".to_owned(),
        needless: "it is done already".to_owned(),
        undo: args.store.command(format_args!("reset {slot}")),
        store: args.store.clone(),
    };
    if !deed.confirm(&args.operator, console)? {
        return Ok(());
    }
    // The registry does not know the file's TTL; the default one outlives the slot too.
    let policy = job.spec.as_ref().map_or_else(Policy::default, |spec| spec.policy.clone());
    let audit = args.operator.audit("mark_done");
    let answer = session.store.mark_done(slot, &audit, policy.done_ttl_for(slot)).await?;
    deed.tell(answer, args.output, console)
}
