//! `cronward locks`: each lock with who holds it and how many wait; of one lock the queue.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::admin::why;
use crate::admin::words::{brief, harmless, instant};
use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::format::{self, Grid};
use crate::cli::session::{connect_locks, shows_others};
use crate::cli::store_args::{StoreAddress, StoreArgs};
use crate::cli::value_parsers;
use crate::cli::watch::{Picture, Row, WatchView, rest, warn_once};
use crate::job::{JobSpec, LockName};
use crate::observe::view::{LockEntryView, LockView};
use crate::resource::{DeadlockStep, LockRecord, deadlocks};
use crate::store::{LockStore, LocksEach, Store, locks_each, redact};

/// List the locks with who holds them and how many wait; with a name, the queue of that lock
///
/// A lock is held by a job that names it, by cronward lock, or by a service. Requests are served in the order of the queue.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward locks ledger --store redis://127.0.0.1/")]
pub(crate) struct LocksArgs {
    /// Show the queue of this lock, with the token of each request
    #[arg(value_name = "NAME")]
    pub(crate) lock: Option<LockName>,
    /// Also list locks that have no holder
    #[arg(long)]
    pub(crate) all: bool,
    /// Keep listing: redraw on a terminal; elsewhere print a line for each change (with --json, a JSON line)
    #[arg(long, short)]
    pub(crate) watch: bool,
    /// How often to poll the store
    #[arg(long, value_name = "DURATION", default_value = "2s", requires = "watch", value_parser = value_parsers::span)]
    pub(crate) interval: Duration,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Refuses a job that names locks where the store that is really opened keeps none: the job could never run.
pub(crate) fn kept_for(job: &JobSpec, store: &Arc<dyn Store>, address: &StoreAddress) -> Result<(), Failure> {
    if job.policy.locks.is_none() || store.capability().locks {
        return Ok(());
    }
    Err(not_kept(format_args!("and job {} names some: use another store, or remove locks", job.name), store, address))
}

/// The same where `--lock` names them.
pub(crate) fn kept_for_flag(store: &Arc<dyn Store>, address: &StoreAddress) -> Result<(), Failure> {
    if store.capability().locks {
        return Ok(());
    }
    Err(not_kept(format_args!("and --lock names one: use another store, or leave out --lock"), store, address))
}

fn not_kept(what: std::fmt::Arguments<'_>, store: &Arc<dyn Store>, address: &StoreAddress) -> Failure {
    let why = format!("store {} keeps no locks, {what}", store.capability().name);
    if address.from_command_line { Failure::Usage(why) } else { Failure::Configuration(why) }
}

/// An open store of locks that is only looked at.
pub(crate) struct LockSession {
    /// The store.
    pub(crate) store: Arc<dyn LockStore>,
    /// Where it is, without secrets.
    pub(crate) location: String,
}

impl LockSession {
    /// Opens the store. One that is not there is not made.
    pub(crate) async fn open(args: &StoreArgs, console: &mut Console) -> Result<Self, Failure> {
        let file = args.read_file(console)?;
        let address = args.address(file.as_ref(), console)?.for_a_person();
        shows_others(&address)?;
        let store = connect_locks(&address).await?;
        Ok(Self { store, location: redact(&address.url) })
    }
}

/// Lists the locks of the store, or one of them; once, or until nobody reads it any more.
pub(crate) async fn list(args: &LocksArgs, console: &mut Console) -> Result<(), Failure> {
    let session = LockSession::open(&args.store, console).await?;
    if args.watch {
        return watch(args, &session, console).await;
    }
    let LockListing { now, records, unreadable } = look(args, &session).await?;
    unreadable.iter().for_each(|error| console.warn(error));
    let views = views(args, &records, now);
    // Of one lock only those in which somebody waits for it.
    let is_asked = |step: &DeadlockStep| args.lock.as_ref().is_none_or(|lock| *lock == step.lock);
    for ring in deadlocks(&records).iter().filter(|ring| !args.output.json && ring.iter().any(is_asked)) {
        if let Some((deadlock, evicts)) = why::deadlock(ring) {
            let evicts = args.store.command_line().command(evicts);
            console.note(format_args!("{}; end one of them, or: {evicts}", harmless(&deadlock)));
        }
    }
    match (&args.lock, args.output.json) {
        (None, true) => console.json(&views),
        (Some(_), true) => views.first().map_or(Ok(()), |view| console.json(view)),
        (None, false) => {
            if views.is_empty() {
                console.note(none(args, &session));
            }
            grid(&views, console).print(console)
        }
        (Some(_), false) => views.iter().try_for_each(|view| page(view, now, console).print(console)),
    }
}

/// What one look at the locks has found.
struct LockListing {
    now: DateTime<Utc>,
    records: Vec<LockRecord>,
    /// Why others cannot be read.
    unreadable: BTreeSet<String>,
}

/// The locks as they are now: of whoever waits for the one that was named, all, since what it waits for may wait for another. An error
/// where none of them can be read.
async fn look(args: &LocksArgs, session: &LockSession) -> Result<LockListing, Failure> {
    let names: Vec<LockName> = args.lock.iter().cloned().collect();
    let found = read(session, &names).await?;
    let LockListing { now, records, .. } = found;
    if names.is_empty() || records.iter().all(|record| record.waiting().next().is_none()) {
        return Ok(LockListing { now, records, ..found });
    }
    let LockListing { now, records: mut all, unreadable } = read(session, &[]).await?;
    // One that is gone meanwhile is shown as it was.
    let is_gone = |record: &LockRecord| all.iter().all(|other| other.lock != record.lock);
    let gone: Vec<LockRecord> = records.into_iter().filter(is_gone).collect();
    all.extend(gone);
    Ok(LockListing { now, records: all, unreadable })
}

async fn read(session: &LockSession, names: &[LockName]) -> Result<LockListing, Failure> {
    let LocksEach { now, records, mut unreadable } = locks_each(&*session.store, names).await?;
    if now.is_none()
        && let Some(error) = unreadable.pop()
    {
        return Err(error.into());
    }
    let unreadable = unreadable.iter().map(|error| harmless(&error.to_string()).into_owned()).collect();
    Ok(LockListing { now: now.unwrap_or_default(), records, unreadable })
}

/// What is listed of them. Without a name those that somebody holds or waits for, unless all are asked for.
fn views(args: &LocksArgs, records: &[LockRecord], now: DateTime<Utc>) -> Vec<LockView> {
    let is_asked = |view: &LockView| match &args.lock {
        Some(lock) => view.lock == *lock,
        None => args.all || !view.queue.is_empty(),
    };
    let mut views = LockView::all(records, now);
    views.retain(is_asked);
    views
}

/// Said where nothing is listed.
fn none(args: &LocksArgs, session: &LockSession) -> String {
    let at = &session.location;
    if args.all {
        return format!("no locks: {at} knows none");
    }
    format!("no locks: nobody holds one at {at} (--all also lists locks without a holder)")
}

/// The table of locks.
fn grid(views: &[LockView], console: &Console) -> Grid {
    let mut grid = Grid::new(console, &["LOCK", "HELD", "HOLDERS", "WAITING", "OLDEST"]);
    for view in views {
        grid.row(vec![
            format::text(view.lock.as_str()),
            format::text(load(view)),
            format::maybe(holders(view)),
            format::text(view.waiting.to_string()),
            format::maybe(view.oldest_wait_s.map(span)),
        ]);
    }
    grid
}

/// How much is held, of how much.
fn load(view: &LockView) -> String {
    match (view.limit, view.held) {
        (Some(limit), held) => format!("{held}/{limit}"),
        (None, 0) => "0".to_owned(),
        (None, held) => format!("{held} shared"),
    }
}

/// Who holds: what for, where that is said, or else the node.
fn holders(view: &LockView) -> Option<String> {
    let named = |entry: &LockEntryView| match entry.label.as_str() {
        "" => entry.node.to_string(),
        label => format!("{label}@{}", entry.node),
    };
    let holders: Vec<String> = view.queue.iter().filter(|entry| entry.holds).map(named).collect();
    (!holders.is_empty()).then(|| holders.join(", "))
}

/// One lock, as a person reads it.
struct Page {
    head: String,
    queue: Grid,
    foot: String,
}

/// The page of a lock: its queue, and the operators' verbs.
fn page(view: &LockView, now: DateTime<Utc>, console: &Console) -> Page {
    let waiting = match view.waiting {
        0 => "nobody waits".to_owned(),
        count => format!("{count} waiting"),
    };
    let held = if view.held == 0 { "free".to_owned() } else { format!("{} held", load(view)) };
    let head = format!("{}  {held}, {waiting}  at {}", view.lock, instant(now));
    let mut foot = String::new();
    for audit in &view.audit {
        let why = if audit.why.is_empty() { String::new() } else { format!(": {}", audit.why) };
        let text = format!("{} by {} on {}{why}", audit.verb, audit.who, audit.host);
        // Writing to a string cannot fail.
        let _ = writeln!(foot, "  {}  {}", instant(audit.at), harmless(&text));
    }
    Page { head, queue: queue(&view.queue, console), foot }
}

/// The table of a queue.
fn queue(entries: &[LockEntryView], console: &Console) -> Grid {
    let columns = ["PLACE", "NODE", "LABEL", "DEMAND", "STANDING", "FENCE", "AGE", "LEASE", "TOKEN"];
    let mut grid = Grid::new(console, &columns);
    for entry in entries {
        grid.row(vec![
            format::text(entry.place.to_string()),
            format::text(entry.node.as_str()),
            format::maybe(Some(&entry.label).filter(|label| !label.is_empty())),
            format::text(&entry.demand),
            format::text(standing(entry)),
            format::maybe(entry.fence.map(|fence| fence.to_string())),
            format::text(span(entry.age_s)),
            format::text(span(entry.remaining_s)),
            format::text(entry.token.to_string()),
        ]);
    }
    grid
}

/// Whether it holds, or else for whom it waits.
fn standing(entry: &LockEntryView) -> String {
    let ring = if entry.deadlocked { ", deadlock" } else { "" };
    match (&entry.waits_for, entry.ahead) {
        (None, _) if entry.holds => "holds".to_owned(),
        (None, _) => "waits".to_owned(),
        (Some(node), 1) => format!("waits for {node}{ring}"),
        (Some(node), ahead) => format!("waits for {node} and {} more{ring}", ahead.saturating_sub(1)),
    }
}

fn span(seconds: f64) -> String {
    brief(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

impl Page {
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.head.clone()];
        let table = self.queue.lines();
        if !table.is_empty() {
            lines.push(String::new());
            lines.extend(table);
        }
        if !self.foot.is_empty() {
            lines.extend([String::new(), "operators".to_owned()]);
            lines.extend(self.foot.lines().map(str::to_owned));
        }
        lines
    }

    fn print(&self, console: &mut Console) -> Result<(), Failure> {
        self.lines().iter().try_for_each(|line| console.print(&format!("{line}\n")))
    }
}

async fn watch(args: &LocksArgs, session: &LockSession, console: &mut Console) -> Result<(), Failure> {
    let mut watch = WatchView::new(args.interval, args.output.json, console);
    // A lock that nobody holds any more is told, too, where it was told before.
    let all = LocksArgs { all: true, store: args.store.clone(), lock: args.lock.clone(), ..*args };
    let (mut held, mut told) = (BTreeSet::new(), BTreeSet::new());
    loop {
        match look_again(&all, &mut held, session).await {
            Ok(listing) => {
                if !watch.is_drawn() {
                    warn_once(&mut told, &listing.unreadable, console);
                }
                show(args, &mut watch, session, &listing, console)?;
            }
            Err(Failure::Store(error)) if error.is_transient() => watch.excuse(&error, console)?,
            Err(failure) => return Err(failure),
        }
        rest(args.interval).await;
    }
}

/// What is listed of one look.
struct Listing {
    now: DateTime<Utc>,
    views: Vec<LockView>,
    unreadable: BTreeSet<String>,
}

/// The same for somebody who goes on looking. What somebody held at the last look and the store knows no more, as one that lost its
/// data, is held by nobody.
async fn look_again(
    args: &LocksArgs,
    held: &mut BTreeSet<LockName>,
    session: &LockSession,
) -> Result<Listing, Failure> {
    let LockListing { now, records, unreadable } = look(args, session).await?;
    let mut views = views(args, &records, now);
    let listed: BTreeSet<&LockName> = views.iter().map(|view| &view.lock).collect();
    let gone: Vec<LockName> = held.iter().filter(|lock| !listed.contains(lock)).cloned().collect();
    let in_use = views.iter().filter(|view| !view.queue.is_empty()).map(|view| view.lock.clone()).collect();
    if !gone.is_empty() {
        let (_, records) = session.store.locks(&gone).await?;
        views.extend(LockView::all(&records, now));
    }
    *held = in_use;
    Ok(Listing { now, views, unreadable })
}

fn show(
    args: &LocksArgs,
    watch: &mut WatchView,
    session: &LockSession,
    listing: &Listing,
    console: &mut Console,
) -> Result<(), Failure> {
    let Listing { now, views, unreadable } = listing;
    let wanted = |view: &&LockView| args.all || args.lock.is_some() || !view.queue.is_empty();
    let listed = |view: &&LockView| wanted(view) || watch.knows(view.lock.as_str());
    let listed: Vec<LockView> = if watch.is_drawn() {
        views.iter().filter(wanted).cloned().collect()
    } else {
        views.iter().filter(listed).cloned().collect()
    };
    let mut table = match listed.first().filter(|_| args.lock.is_some() && watch.is_drawn()) {
        Some(view) => page(view, *now, console).lines(),
        None => grid(&listed, console).lines(),
    };
    table.extend(unreadable.iter().filter(|_| watch.is_drawn()).cloned());
    let rows = listed.iter().map(|view| Row { key: view.lock.as_str(), fingerprint: fingerprint(view), view });
    let title = format!("{}  {}", instant(*now), session.location);
    watch.show(Picture { title, table, empty: none(args, session), rows: rows.collect() }, console)
}

/// What makes a lock worth another line: anything but the passing of time.
fn fingerprint(view: &LockView) -> String {
    let queue: Vec<_> =
        view.queue.iter().map(|entry| (entry.token, entry.holds, entry.deadlocked, entry.fence)).collect();
    format!("{queue:?} {}", view.audit.len())
}
