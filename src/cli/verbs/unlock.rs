//! `cronward unlock J@S`: takes the lease from its holder.

use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::lookup;
use crate::cli::reference::SlotRef;
use crate::cli::session::Session;
use crate::cli::store_args::StoreArgs;
use crate::cli::verbs::OperatorArgs;
use crate::cli::verbs::deed::Deed;
use crate::slot::{Mark, SlotRecord};
use crate::store::Intervention;

/// Take the lease of a slot from the node that holds it
///
/// The holder's next renewal is answered "lost": with on_lost = "kill" it stops its command, otherwise the command goes on,
/// and two runs may overlap. The attempt counts. A foreign key that is held with the lease (exec --key) is deleted, unless
/// somebody else has it by now.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward unlock billing@2026-11-21T14Z --reason 'node b is gone' --yes")]
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

/// Unlocks the slot.
pub(crate) async fn unlock(args: &Args, console: &mut Console) -> Result<(), Failure> {
    let session = Session::open(&args.store, console).await?;
    unlock_in(&session, args, console).await
}

pub(super) async fn unlock_in(session: &Session, args: &Args, console: &mut Console) -> Result<(), Failure> {
    let (_, record) = lookup::find(session, &args.slot).await?;
    let deed = Deed {
        verb: "unlock",
        target: record.slot.to_string(),
        effect: effect(&record),
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

fn effect(record: &SlotRecord) -> String {
    match &record.mark {
        Mark::Leased { by, .. } => {
            format!("attempt {} on node {} loses its lease, and others may start", by.attempt, by.node)
        }
        Mark::Free | Mark::Backoff { .. } | Mark::Done(_) => "nobody loses a lease".to_owned(),
    }
}
