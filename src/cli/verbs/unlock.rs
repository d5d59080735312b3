//! `cronward unlock` of a slot: takes the lease from the node that holds it.

use crate::admin::AdminSession;
use crate::admin::lookup::{self, SlotRef};
use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::store_args::StoreArgs;
use crate::cli::value_parsers;
use crate::cli::verbs::{Change, OperatorArgs, Undo};
use crate::job::LockName;
use crate::slot::{Mark, SlotRecord, Token};
use crate::store::Intervention;

/// Take the lease of a slot from the node that holds it, or a lock from whoever holds it
///
/// The holder's next renewal fails. With on_lost = "kill" the holder then stops its command; otherwise the command continues,
/// and two runs may overlap. The attempt counts. An external lock that is held with the lease (exec --key) is deleted, unless
/// somebody else holds it by now.
///
/// With --lock the holder of a lock loses it. Its cronward lock stops the command at the next renewal; with --on-lost continue
/// the command continues.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward unlock billing@2026-11-21T14Z --reason 'node b is gone' --yes")]
pub(crate) struct UnlockArgs {
    /// The slot: billing@2026-11-21T14Z, billing for the current slot, billing@-1 for the previous slot
    #[arg(value_name = "JOB[@SLOT]", required_unless_present = "lock", conflicts_with = "lock")]
    pub(crate) slot: Option<SlotRef>,
    /// A lock instead of a slot
    #[arg(long, value_name = "NAME")]
    pub(crate) lock: Option<LockName>,
    /// Only the request with this token, whether it holds the lock or waits; `cronward locks NAME` lists the tokens
    #[arg(long, value_name = "TOKEN", requires = "lock", conflicts_with = "all", value_parser = value_parsers::token)]
    pub(crate) token: Option<Token>,
    /// All holders of the lock
    #[arg(long, requires = "lock")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

pub(super) async fn unlock_in(session: &AdminSession, args: &UnlockArgs, console: &mut Console) -> Result<(), Failure> {
    let none = || Failure::Usage("no slot: name one, or give --lock NAME".to_owned());
    let (_, record) = lookup::find(session, args.slot.as_ref().ok_or_else(none)?).await?;
    let change = Change {
        verb: "unlock",
        target: record.slot.to_string(),
        effect: effect_of_unlock(&record),
        needless: "no node holds the lease".to_owned(),
        undo: Undo::Not(undo_of_unlock(&record)),
        store: args.store.clone(),
    };
    // The store is not asked either: nobody agreed to take a lease that begins in this moment.
    if !matches!(record.mark, Mark::Leased { .. }) {
        return change.tell(Intervention::Unchanged, args.output, console);
    }
    if !change.confirm(&args.operator, console)? {
        return Ok(());
    }
    let answer = session.store.unlock(&record.slot, &args.operator.audit("unlock")).await?;
    change.tell(answer, args.output, console)
}

/// A lease cannot be handed back: what is left to do.
fn undo_of_unlock(record: &SlotRecord) -> String {
    let node = match &record.mark {
        Mark::Leased { by, .. } => format!(" on node {}", by.node),
        Mark::Free | Mark::Backoff { .. } | Mark::Done(_) => String::new(),
    };
    format!("cannot be undone; if the command{node} is still running, stop it: two runs may overlap")
}

/// What the unlock does to this slot, in words.
fn effect_of_unlock(record: &SlotRecord) -> String {
    match &record.mark {
        Mark::Leased { by, .. } => {
            format!("attempt {} on node {} loses its lease, and other nodes may start the slot", by.attempt, by.node)
        }
        Mark::Free | Mark::Backoff { .. } | Mark::Done(_) => "no node loses a lease".to_owned(),
    }
}
