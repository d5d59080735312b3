//! `cronward reset J@S`: the slot begins anew.

use crate::cli::catalog::KnownJob;
use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::lookup;
use crate::cli::pasted::starter;
use crate::cli::reference::SlotRef;
use crate::cli::session::Session;
use crate::cli::store_args::StoreArgs;
use crate::cli::verbs::OperatorArgs;
use crate::cli::verbs::deed::Deed;
use crate::slot::{Mark, SlotRecord};

/// Let a slot begin anew: forgive its attempts, end a wait, take back a done marker and a verdict
///
/// Nodes try the slot again while it lasts; once it is over, only `cronward trigger J@S --past` runs it. Attempt numbers go
/// on rising. A slot that a node holds is left alone.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward reset billing@2026-11-21T14Z --reason 'disk is free again' --yes")]
pub(crate) struct Args {
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
pub(crate) async fn reset(args: &Args, console: &mut Console) -> Result<(), Failure> {
    let session = Session::open(&args.store, console).await?;
    reset_in(&session, args, console).await
}

pub(super) async fn reset_in(session: &Session, args: &Args, console: &mut Console) -> Result<(), Failure> {
    let (job, record) = lookup::find(session, &args.slot).await?;
    let slot = &record.slot;
    let mark = args.store.command(format_args!("mark-done {slot}"));
    let deed = Deed {
        verb: "reset",
        target: slot.to_string(),
        effect: effect(&record, job, session, &args.store),
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
fn effect(record: &SlotRecord, job: &KnownJob, session: &Session, store: &StoreArgs) -> String {
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
