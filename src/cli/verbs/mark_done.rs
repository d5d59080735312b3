//! `cronward mark-done J@S`: nobody runs the slot.

use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::lookup;
use crate::cli::reference::SlotRef;
use crate::cli::session::Session;
use crate::cli::store_args::StoreArgs;
use crate::cli::verbs::OperatorArgs;
use crate::cli::verbs::deed::Deed;
use crate::job::Policy;

/// Mark a slot as done without a run: no node starts it, and it is no failure
///
/// For work that was done by hand, or that need not be done. A slot that a node holds is left alone.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward mark-done billing@2026-11-21T14Z --reason 'done by hand' --yes")]
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

/// Marks the slot.
pub(crate) async fn mark_done(args: &Args, console: &mut Console) -> Result<(), Failure> {
    let session = Session::open(&args.store, console).await?;
    mark_done_in(&session, args, console).await
}

pub(super) async fn mark_done_in(session: &Session, args: &Args, console: &mut Console) -> Result<(), Failure> {
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
