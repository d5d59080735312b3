//! `cronward unlock --lock`: takes somebody out of the queue of a lock, whether they hold it or wait for it.

use crate::admin::actions::{Change, RequestEnd, RequestView, Undo};
use crate::admin::words::harmless;
use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::locks::LockSession;
use crate::cli::verbs::UnlockArgs;
use crate::job::LockName;
use crate::resource::{LockEntry, LockRecord};
use crate::slot::Audit;
use crate::store::{Applied, Intervention, StoreError};

/// Evicts the one holder, the request that is named, or all who hold.
pub(super) async fn evict(args: &UnlockArgs, lock: &LockName, console: &mut Console) -> Result<(), Failure> {
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
    let change = change(args, lock, &chosen, needless(args));
    // The store is not asked either: nobody agreed to take it from whoever comes in this moment.
    if chosen.is_empty() {
        return change.tell(Intervention::Unchanged, args.output, console);
    }
    if !change.confirm(&args.operator, console)? {
        return Ok(());
    }
    let ends = take_out(session, args, lock, chosen).await;
    tell(args, lock, ends, console)
}

/// What becomes of these requests, in words.
fn change(args: &UnlockArgs, lock: &LockName, chosen: &[&LockEntry], needless: String) -> Change {
    Change {
        verb: "unlock",
        target: lock.to_string(),
        effect: effect_of_eviction(chosen),
        needless,
        undo: Undo::Not(undo_of_eviction(chosen)),
        line: args.store.command_line(),
    }
}

/// What became of each of those who were to be taken out, in the order asked.
struct Ends<'a> {
    each: Vec<(&'a LockEntry, RequestEnd)>,
    /// What kept the rest from being asked for.
    error: Option<StoreError>,
}

/// Takes out one after the other. The first error is the last question: those who come after would wait as long for the same answer.
async fn take_out<'a>(
    session: &LockSession,
    args: &UnlockArgs,
    lock: &LockName,
    chosen: Vec<&'a LockEntry>,
) -> Ends<'a> {
    let audit = args.operator.audit("unlock");
    let mut ends = Ends { each: Vec::new(), error: None };
    for entry in chosen {
        let end = match &ends.error {
            Some(_) => RequestEnd::Left,
            None => match session.store.evict(lock, entry.token, &naming(entry, &audit)).await {
                Ok(Intervention::Applied) => RequestEnd::Removed,
                Ok(Intervention::Unchanged | Intervention::Held { .. }) => RequestEnd::Absent,
                Err(error) => {
                    let applied = error.applied;
                    ends.error = Some(error);
                    if applied == Applied::No { RequestEnd::Left } else { RequestEnd::Unknown }
                }
            },
        };
        ends.each.push((entry, end));
    }
    ends
}

/// The entry in the lock's record: of several who were taken out each line says which one it was.
fn naming(entry: &LockEntry, audit: &Audit) -> Audit {
    let named = named(std::iter::once(entry));
    let why = if audit.why.is_empty() { named } else { format!("{named}: {}", audit.why) };
    Audit { why, ..audit.clone() }
}

/// Tells who was taken out, on stdout; and, as a failure, who was not.
fn tell(args: &UnlockArgs, lock: &LockName, ends: Ends<'_>, console: &mut Console) -> Result<(), Failure> {
    let Ends { each, error } = ends;
    let with = |end: RequestEnd| each.iter().filter(move |(_, other)| *other == end).map(|(entry, _)| *entry);
    let removed: Vec<&LockEntry> = with(RequestEnd::Removed).collect();
    let mut done = change(args, lock, &removed, absent(with(RequestEnd::Absent)));
    if !removed.is_empty() && !done.needless.is_empty() {
        done.effect = format!("{}; {}", done.effect, done.needless);
    }
    if args.output.json {
        let requests = each.iter().map(|(entry, end)| RequestView::of(entry, *end)).collect();
        console.json(&done.view(!removed.is_empty(), requests))?;
    } else if !removed.is_empty() || error.is_none() {
        let answer = if removed.is_empty() { Intervention::Unchanged } else { Intervention::Applied };
        done.tell(answer, args.output, console)?;
    }
    let Some(error) = error else { return Ok(()) };
    if each.len() == 1 {
        return Err(error.into());
    }
    let mut told = vec![format!("{} of {} requests removed", removed.len(), each.len())];
    for (end, word) in [(RequestEnd::Left, "not removed"), (RequestEnd::Unknown, "perhaps removed")] {
        let named = named(with(end));
        if !named.is_empty() {
            told.push(format!("{word}: {named}"));
        }
    }
    Err(Failure::Partly(format!("unlock {lock}: {}", told.join("; ")), error))
}

/// Those who were not there any more when their turn came, in words; empty where there are none.
fn absent<'a>(entries: impl Iterator<Item = &'a LockEntry>) -> String {
    match named(entries) {
        none if none.is_empty() => none,
        named => format!("already gone from the queue: {named}"),
    }
}

fn named<'a>(entries: impl Iterator<Item = &'a LockEntry>) -> String {
    entries.map(|entry| format!("{} ({})", who(entry), entry.token)).collect::<Vec<_>>().join(", ")
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

    use async_trait::async_trait;
    use chrono::{DateTime, Utc};
    use serde_json::{Value, json};

    use crate::cli::ExitCode;
    use crate::clock::SystemClock;
    use crate::error::Reply;
    use crate::lock::{Held, Locks};
    use crate::resource::{AcquireRequest, Acquired, LockExit, LockHold, LockRelease, LockRenewal};
    use crate::slot::Token;
    use crate::store::memory::MemoryStore;
    use crate::store::{ErrorKind, LockStore, LockWakeups, Op, StoreOptions};

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
        let token = locks.list().await.unwrap()[0].entries[0].token;
        let told = said(&session, &["--reason", "it hangs", "--yes"]).await.unwrap();
        assert!(told.starts_with("unlock x: bill on node a loses the lock\ncannot be undone; "), "{told}");
        let record = locks.list().await.unwrap().remove(0);
        assert_eq!((record.entries.len(), &*record.audit[0].why), (0, &*format!("bill on node a ({token}): it hangs")));
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

    /// A store at which the second eviction fails, and before it somebody may have left.
    #[derive(Debug)]
    struct Fails {
        store: Arc<MemoryStore>,
        evictions: std::sync::Mutex<Vec<Result<Option<Token>, Applied>>>,
    }

    #[async_trait]
    impl LockStore for Fails {
        async fn acquire(&self, request: &AcquireRequest) -> Reply<Acquired> {
            self.store.acquire(request).await
        }
        async fn renew_lock(&self, hold: &LockHold) -> Reply<LockRenewal> {
            self.store.renew_lock(hold).await
        }
        async fn release(&self, exit: &LockExit) -> Reply<LockRelease> {
            self.store.release(exit).await
        }
        async fn locks(&self, names: &[LockName]) -> Reply<(DateTime<Utc>, Vec<LockRecord>)> {
            self.store.locks(names).await
        }
        async fn evict(&self, lock: &LockName, token: Token, audit: &Audit) -> Reply<Intervention> {
            let next = self.evictions.lock().unwrap().remove(0);
            match next {
                Ok(Some(other)) => self.store.evict(lock, other, audit).await.map(drop)?,
                Ok(None) => {}
                Err(applied) => {
                    let message = "no answer within 500ms";
                    return Err(StoreError::new(ErrorKind::Timeout, applied, Op::Evict, "redis://h", message));
                }
            }
            self.store.evict(lock, token, audit).await
        }
        fn listen(&self, instance: Token) -> LockWakeups {
            self.store.listen(instance)
        }
        fn lock_poll(&self) -> Option<std::time::Duration> {
            None
        }
        async fn purge_locks(&self) -> Reply<u64> {
            Ok(0)
        }
    }

    /// Three who share the lock are all to be taken out, and these are the store's answers: stdout, the failure, and their tokens.
    async fn all_of_three(
        words: &[&str],
        answers: impl Fn(&[Token]) -> Vec<Result<Option<Token>, Applied>>,
    ) -> (String, Option<Failure>, Vec<Token>, usize) {
        let store = Arc::new(MemoryStore::new(StoreOptions::default(), Arc::new(SystemClock)));
        let locks = Locks::builder(store.clone(), "a").label("bill").build().unwrap();
        let held = [shared(&locks).await, shared(&locks).await, shared(&locks).await];
        let tokens: Vec<Token> = locks.list().await.unwrap()[0].entries.iter().map(|entry| entry.token).collect();
        let fails = Fails { store, evictions: answers(&tokens).into() };
        let session = LockSession { store: Arc::new(fails), location: "memory:".to_owned() };
        let args = Line::parse_from([&["unlock", "--lock", "x", "--all", "--yes"], words].concat()).args;
        let (mut console, out, _) = Console::captured(false);
        let done = evict_in(&session, &args, args.lock.as_ref().unwrap(), &mut console).await;
        let left = locks.list().await.unwrap()[0].entries.len();
        drop(held);
        (out.text(), done.err(), tokens, left)
    }

    #[tokio::test]
    async fn of_all_that_were_to_go_each_is_told_by_what_became_of_it() {
        let (told, failure, tokens, left) = all_of_three(&[], |_| vec![Ok(None), Err(Applied::Maybe)]).await;
        assert!(told.starts_with("unlock x: bill on node a loses the lock\ncannot be undone; "), "{told}");
        let failure = failure.unwrap();
        assert_eq!((failure.exit_code(), left), (ExitCode::TryAgain, 2));
        let [_, second, third] = tokens[..] else { panic!("{tokens:?}") };
        assert_eq!(
            failure.to_string(),
            format!(
                "unlock x: 1 of 3 requests removed; not removed: bill on node a ({third}); perhaps removed: bill on node a \
                 ({second}): redis://h: evict: no answer within 500ms; try again, or raise [store] op_timeout"
            )
        );
    }

    #[tokio::test]
    async fn a_store_that_refuses_the_first_has_removed_nothing() {
        let (told, failure, _, left) = all_of_three(&[], |_| vec![Err(Applied::No)]).await;
        let failure = failure.unwrap().to_string();
        assert_eq!((told.as_str(), left), ("", 3));
        assert!(failure.starts_with("unlock x: 0 of 3 requests removed; not removed: bill on node a ("), "{failure}");
        assert!(!failure.contains("perhaps"), "{failure}");
    }

    #[tokio::test]
    async fn whoever_left_by_itself_meanwhile_was_not_removed_and_is_no_failure() {
        let (told, failure, tokens, left) =
            all_of_three(&[], |tokens| vec![Ok(Some(tokens[1])), Ok(None), Ok(None)]).await;
        assert!(failure.is_none() && left == 0, "{failure:?}");
        let gone = format!("; already gone from the queue: bill on node a ({})\n", tokens[1]);
        assert_eq!(told.lines().next().map(|line| format!("{line}\n").ends_with(&gone)), Some(true), "{told}");
        assert_eq!(told.matches("loses the lock").count(), 2, "{told}");
    }

    #[tokio::test]
    async fn programs_are_told_of_each_request_also_where_the_rest_failed() {
        let (told, failure, tokens, _) = all_of_three(&["--json"], |_| vec![Ok(None), Err(Applied::Maybe)]).await;
        assert_eq!(failure.map(|failure| failure.exit_code()), Some(ExitCode::TryAgain));
        let told: Value = serde_json::from_str(&told).unwrap();
        let request = |at: usize, result: &str| json!({"token": tokens[at].to_string(), "node": "a", "result": result});
        assert_eq!(told["requests"], json!([request(0, "removed"), request(1, "unknown"), request(2, "not_removed")]));
        assert_eq!(told["changed"], true);
    }
}
