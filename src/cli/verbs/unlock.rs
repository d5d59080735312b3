//! `cronward unlock` of a slot: takes the lease from the node that holds it.

use crate::admin::lookup::{self, SlotRef};
use crate::admin::{AdminSession, actions};
use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::store_args::StoreArgs;
use crate::cli::value_parsers;
use crate::cli::verbs::OperatorArgs;
use crate::cli::verbs::confirm::agree;
use crate::job::LockName;
use crate::slot::Token;

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
    #[arg(value_name = "JOB[@SLOT]", required_unless_present = "lock", conflicts_with_all = ["lock", "token", "all"])]
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
    let (job, record) = lookup::find(session, args.slot.as_ref().ok_or_else(none)?).await?;
    let proposal = actions::unlock(job, &record, session.now, args.store.command_line(), &actions::ENGLISH);
    agree(&proposal, session, &args.operator, args.output, console).await
}
