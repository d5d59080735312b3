//! `cronward unlock`: takes the lease of a slot from the node that holds it, or takes somebody out of the queue of a lock, whether they
//! hold it or wait for it.

use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::format::harmless;
use crate::cli::locks::LockSession;
use crate::cli::lookup::{self, SlotRef};
use crate::cli::session::StoreSession;
use crate::cli::store_args::StoreArgs;
use crate::cli::value_parsers;
use crate::cli::verbs::{Change, OperatorArgs, Undo};
use crate::job::LockName;
use crate::resource::{LockEntry, LockRecord};
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

/// Unlocks the slot, or the lock.
pub(crate) async fn unlock(args: &UnlockArgs, console: &mut Console) -> Result<(), Failure> {
    if let Some(lock) = &args.lock {
        return evict(args, lock, console).await;
    }
    let session = StoreSession::open(&args.store, console).await?;
    unlock_in(&session, args, console).await
}

pub(super) async fn unlock_in(session: &StoreSession, args: &UnlockArgs, console: &mut Console) -> Result<(), Failure> {
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

/// Evicts the one holder, the request that is named, or all who hold.
async fn evict(args: &UnlockArgs, lock: &LockName, console: &mut Console) -> Result<(), Failure> {
    let session = LockSession::open(&args.store, console).await?;
    evict_in(&session, args, lock, console).await
}

async fn evict_in(
    session: &LockSession,
    args: &UnlockArgs,
    lock: &LockName,
    console: &mut Console,
) -> Result<(), Failure> {
    let (_, records) = session.store.locks(std::slice::from_ref(lock)).await?;
    let chosen = match records.first() {
        Some(record) => chosen(args, record)?,
        None => Vec::new(),
    };
    let change = Change {
        verb: "unlock",
        target: lock.to_string(),
        effect: effect_of_eviction(&chosen),
        needless: needless(args),
        undo: Undo::Not(undo_of_eviction(&chosen)),
        store: args.store.clone(),
    };
    // The store is not asked either: nobody agreed to take it from whoever comes in this moment.
    if chosen.is_empty() {
        return change.tell(Intervention::Unchanged, args.output, console);
    }
    if !change.confirm(&args.operator, console)? {
        return Ok(());
    }
    let audit = args.operator.audit("unlock");
    let mut answer = Intervention::Unchanged;
    for entry in chosen {
        if session.store.evict(lock, entry.token, &audit).await? == Intervention::Applied {
            answer = Intervention::Applied;
        }
    }
    change.tell(answer, args.output, console)
}

/// Who is taken out. Of several who hold one has to be named.
fn chosen<'a>(args: &UnlockArgs, record: &'a LockRecord) -> Result<Vec<&'a LockEntry>, Failure> {
    if let Some(token) = args.token {
        return Ok(record.entries.iter().filter(|entry| entry.token == token).collect());
    }
    let holders: Vec<&LockEntry> = record.holders().collect();
    if holders.len() > 1 && !args.all {
        let named: Vec<String> = holders.iter().map(|entry| format!("{} ({})", entry.token, who(entry))).collect();
        return Err(Failure::Usage(format!(
            "{} has {} holders: name one of them with --token, or give --all: {}",
            record.lock,
            holders.len(),
            named.join(", ")
        )));
    }
    Ok(holders)
}

fn needless(args: &UnlockArgs) -> String {
    match args.token {
        Some(token) => format!("no request in its queue has the token {token}"),
        None => "nobody holds the lock".to_owned(),
    }
}

/// What is done to each of them, in words.
fn effect_of_eviction(chosen: &[&LockEntry]) -> String {
    let parts = chosen.iter().map(|entry| {
        let loses = if runs_under(entry) { "loses the lock" } else { "is taken out of the queue" };
        format!("{} {loses}", who(entry))
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// A lock cannot be handed back: what is left to do.
fn undo_of_eviction(chosen: &[&LockEntry]) -> String {
    let mut nodes: Vec<&str> =
        chosen.iter().filter(|entry| runs_under(entry)).map(|entry| entry.by.node.as_str()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    if nodes.is_empty() {
        return "cannot be undone; whoever waited has to ask again".to_owned();
    }
    let nodes = nodes.join(", ");
    format!("cannot be undone; if the command on node {nodes} is still running, stop it: two holders may overlap")
}

/// Whether something may run under it: one of several locks may hold here and wait elsewhere, and has no fence before it holds all.
fn runs_under(entry: &LockEntry) -> bool {
    entry.holds && entry.by.fence.is_some()
}

fn who(entry: &LockEntry) -> String {
    let label = harmless(&entry.by.label);
    if label.is_empty() { format!("node {}", entry.by.node) } else { format!("{label} on node {}", entry.by.node) }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::Arc;

    use clap::Parser;

    use crate::clock::SystemClock;
    use crate::lock::{Held, Locks};
    use crate::store::StoreOptions;
    use crate::store::memory::MemoryStore;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: UnlockArgs,
    }

    fn session() -> (LockSession, Locks) {
        let store = Arc::new(MemoryStore::new(StoreOptions::default(), Arc::new(SystemClock)));
        let locks = Locks::builder(store.clone(), "a").label("bill").build().unwrap();
        (LockSession { store, location: "memory:".to_owned() }, locks)
    }

    async fn said(session: &LockSession, words: &[&str]) -> Result<String, String> {
        let args = Line::parse_from([&["unlock", "--lock", "x"], words].concat()).args;
        let (mut console, out, _) = Console::captured(false);
        let lock = args.lock.clone().unwrap();
        let done = evict_in(session, &args, &lock, &mut console).await;
        done.map(|()| out.text()).map_err(|failure| failure.to_string())
    }

    async fn shared(locks: &Locks) -> Held {
        locks.rw_lock("x").unwrap().read().await.unwrap()
    }

    #[tokio::test]
    async fn the_one_holder_needs_no_name_and_its_end_is_recorded() {
        let (session, locks) = session();
        let held = locks.mutex("x").unwrap().lock().await.unwrap();
        let told = said(&session, &["--reason", "it hangs", "--yes"]).await.unwrap();
        assert!(told.starts_with("unlock x: bill on node a loses the lock\ncannot be undone; "), "{told}");
        let record = locks.list().await.unwrap().remove(0);
        assert_eq!((record.entries.len(), record.audit[0].why.as_str()), (0, "it hangs"));
        drop(held);
    }

    #[tokio::test]
    async fn of_several_holders_one_is_named_or_all() {
        let (session, locks) = session();
        let held = [shared(&locks).await, shared(&locks).await, shared(&locks).await];
        let refused = said(&session, &["--yes"]).await.unwrap_err();
        assert!(refused.starts_with("x has 3 holders: name one of them with --token, or give --all: "), "{refused}");
        let token = locks.list().await.unwrap()[0].entries[1].token.to_string();
        assert!(refused.contains(&token), "{refused}");
        said(&session, &["--token", &token, "--yes"]).await.unwrap();
        let left = locks.list().await.unwrap().remove(0).entries;
        assert!(left.len() == 2 && left.iter().all(|entry| entry.token.to_string() != token));
        said(&session, &["--all", "--yes"]).await.unwrap();
        assert!(locks.list().await.unwrap()[0].entries.is_empty());
        drop(held);
    }

    #[tokio::test]
    async fn nothing_runs_under_a_lock_whose_request_waits_for_another() {
        let (session, locks) = session();
        let held = locks.mutex("y").unwrap().lock().await.unwrap();
        let both = locks.request().exclusive("x").unwrap().exclusive("y").unwrap();
        let waiting = tokio::spawn(both.lock());
        let token = loop {
            let records = locks.show(&["x".parse().unwrap()]).await.unwrap();
            if let Some(entry) = records.first().and_then(|record| record.entries.first()) {
                break entry.token.to_string();
            }
            tokio::task::yield_now().await;
        };
        let told = said(&session, &["--token", &token, "--yes"]).await.unwrap();
        let wanted =
            "unlock x: bill on node a is taken out of the queue\ncannot be undone; whoever waited has to ask again";
        assert!(told.starts_with(wanted), "{told}");
        waiting.abort();
        drop(held);
    }

    #[tokio::test]
    async fn nobody_is_taken_out_where_nobody_was_seen_or_nobody_agreed() {
        let (session, locks) = session();
        assert_eq!(said(&session, &[]).await.unwrap(), "unlock x: nothing to do, nobody holds the lock\n");
        let held = locks.mutex("x").unwrap().lock().await.unwrap();
        let refused = said(&session, &[]).await.unwrap_err();
        assert_eq!(refused, "unlock x changes the store and needs confirmation: add --yes");
        let stranger = "000000000000000000000000000000ff";
        let told = said(&session, &["--token", stranger, "--yes"]).await.unwrap();
        assert!(told.ends_with(&format!("no request in its queue has the token {stranger}\n")), "{told}");
        assert_eq!(locks.list().await.unwrap()[0].entries.len(), 1);
        drop(held);
    }
}
