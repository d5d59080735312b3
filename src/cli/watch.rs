//! A listing that is looked at again at an interval: on a terminal it is drawn in its place; elsewhere each row that changed gets
//! another line, as with `kubectl get --watch`. And `jobs --watch`, which also looks whenever the store hints that something changed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::broadcast::error::RecvError;

use crate::admin::words::{brief, harmless, instant};
use crate::admin::{self, AdminSession};
use crate::cli::console::{Console, Live};
use crate::cli::failure::Failure;
use crate::cli::jobs::{self, JobsArgs};
use crate::cli::session::{self, connect};
use crate::clock::{Clock, SystemClock};
use crate::config::Config;
use crate::drive::timers;
use crate::observe::view::JobView;
use crate::slot::SlotState;
use crate::store::{StoreError, Wakeups};

/// A hint is followed by others: a slot that ends and the next one that begins are shown in one step.
const TOGETHER: Duration = Duration::from_millis(100);

/// Shows the jobs until it is interrupted, or until nobody reads it any more.
pub(crate) async fn watch(args: &JobsArgs, console: &mut Console) -> Result<(), Failure> {
    let file = args.store.read_file(console)?;
    let address = args.store.address(file.as_ref(), console)?.for_a_person();
    let store = connect(&address).await?;
    let mut hints = store.subscribe();
    let mut session = session::begin(store, &address, &args.store, file.as_ref(), console).await?;
    let mut view = WatchView::new(args.interval, args.output.json, console);
    let mut told = BTreeSet::new();
    loop {
        match look(&mut session, file.as_ref()).await {
            Ok((views, unreadable)) => {
                let unreadable = unreadable.iter().map(|error| harmless(&error.to_string()).into_owned()).collect();
                if !view.is_drawn() {
                    warn_once(&mut told, &unreadable, console);
                }
                show(&mut view, &views, &unreadable, &session, console)?;
            }
            Err(Failure::Store(error)) if error.is_transient() => view.excuse(&error, console)?,
            Err(failure) => return Err(failure),
        }
        next(&mut hints, args.interval).await;
    }
}

/// The jobs as they are now; the registry may know more of them by now.
async fn look(session: &mut AdminSession, file: Option<&Config>) -> Result<(Vec<JobView>, Vec<StoreError>), Failure> {
    session.look_again(file).await?;
    Ok(admin::jobs::views(session).await?)
}

/// Warns of what cannot be read now and could be at the last look.
pub(crate) fn warn_once(told: &mut BTreeSet<String>, unreadable: &BTreeSet<String>, console: &mut Console) {
    unreadable.difference(told).for_each(|error| console.warn(error));
    told.clone_from(unreadable);
}

/// Until it is time to look again.
async fn next(hints: &mut Wakeups, interval: Duration) {
    tokio::select! {
        () = rest(interval) => {}
        () = hint(hints) => {
            rest(TOGETHER.min(interval)).await;
            while hints.try_recv().is_ok() {}
        }
    }
}

/// Lets so much time pass.
pub(crate) async fn rest(span: Duration) {
    timers::until(&SystemClock, Some(SystemClock.now().mono + span)).await;
}

/// The next hint; a store that gives none is silent.
async fn hint(hints: &mut Wakeups) {
    if matches!(hints.recv().await, Err(RecvError::Closed)) {
        std::future::pending::<()>().await;
    }
}

/// What is looked at again and again: in its place on a terminal, elsewhere line by line.
pub(crate) struct WatchView(View);

/// What was shown last.
enum View {
    /// In its place, below its head.
    Drawn { live: Live, table: Vec<String>, head: String },
    /// Line by line: what each row was when it was last written.
    Appended { known: BTreeMap<String, String>, json: bool, away: bool },
}

/// What is there at one look.
pub(crate) struct Picture<'a, V> {
    /// When, and where.
    pub(crate) title: String,
    /// The table, its header first; a line for each row where it is not drawn.
    pub(crate) table: Vec<String>,
    /// Said where there is no row.
    pub(crate) empty: String,
    /// What the table is made of, in its order.
    pub(crate) rows: Vec<Row<'a, V>>,
}

/// One row of it.
pub(crate) struct Row<'a, V> {
    /// Its name.
    pub(crate) key: &'a str,
    /// What makes it worth another line: anything but the passing of time.
    pub(crate) fingerprint: String,
    /// For programs.
    pub(crate) view: &'a V,
}

impl WatchView {
    /// Nothing was shown yet.
    pub(crate) fn new(interval: Duration, json: bool, console: &Console) -> Self {
        if console.lively && !json {
            let head = format!("polled every {}; Ctrl-C ends", span(interval));
            return Self(View::Drawn { live: Live::default(), table: Vec::new(), head });
        }
        Self(View::Appended { known: BTreeMap::new(), json, away: false })
    }

    /// Whether it is drawn in its place.
    pub(crate) const fn is_drawn(&self) -> bool {
        matches!(self.0, View::Drawn { .. })
    }

    /// Whether a line was written of this row.
    pub(crate) fn knows(&self, key: &str) -> bool {
        matches!(&self.0, View::Appended { known, .. } if known.contains_key(key))
    }

    /// Shows what is there, or what of it has changed.
    pub(crate) fn show<V: Serialize>(&mut self, picture: Picture<'_, V>, console: &mut Console) -> Result<(), Failure> {
        let Picture { title, table: lines, empty, rows } = picture;
        match &mut self.0 {
            View::Drawn { live, table, head } => {
                *table = if rows.is_empty() { vec![empty] } else { lines };
                live.draw(&framed(&format!("{title}  {head}"), table, None), console)
            }
            View::Appended { known, json, away } => {
                *away = false;
                append(known, *json, &rows, &lines, console)
            }
        }
    }

    /// The store did not answer: what was last known stays, and it is said that it is old.
    pub(crate) fn excuse(&mut self, error: &StoreError, console: &mut Console) -> Result<(), Failure> {
        let told = format!("not up to date, {}; trying again", harmless(&error.to_string()));
        match &mut self.0 {
            View::Drawn { live, table, head } => live.draw(&framed(head, table, Some(&told)), console),
            View::Appended { away, .. } => {
                if !std::mem::replace(away, true) {
                    console.warn(told);
                }
                Ok(())
            }
        }
    }
}

fn show(
    watch: &mut WatchView,
    views: &[JobView],
    unreadable: &BTreeSet<String>,
    session: &AdminSession,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut views = views.to_vec();
    if watch.is_drawn() {
        // A terminal may have fewer rows than there are jobs.
        views.sort_by_key(urgency);
    }
    let title = format!("{}  {}", instant(session.now), session.store.location());
    let mut table = jobs::grid(&views, session.now, console).lines();
    table.extend(unreadable.iter().filter(|_| watch.is_drawn()).cloned());
    let picture = Picture { title, table, empty: session.catalog.no_jobs(), rows: rows(&views) };
    watch.show(picture, console)
}

fn rows(views: &[JobView]) -> Vec<Row<'_, JobView>> {
    views.iter().map(|view| Row { key: view.job.as_str(), fingerprint: fingerprint(view), view }).collect()
}

/// What needs a person comes first, and what is done last.
fn urgency(view: &JobView) -> u8 {
    match view.current.as_ref().map(|slot| slot.state) {
        Some(SlotState::Failed | SlotState::Missed) => 0,
        Some(SlotState::Retrying) => 1,
        Some(SlotState::Running) => 2,
        Some(SlotState::Pending) => 3,
        Some(SlotState::Skipped) | None => 4,
        Some(SlotState::Done) => 5,
    }
}

fn framed(head: &str, table: &[String], foot: Option<&str>) -> Vec<String> {
    let head = [head.to_owned(), String::new()];
    head.into_iter().chain(table.iter().cloned()).chain(foot.map(str::to_owned)).collect()
}

/// Writes the rows that changed; the table's header with the first ones. `lines` is the table, its header first.
fn append<V: Serialize>(
    known: &mut BTreeMap<String, String>,
    json: bool,
    rows: &[Row<'_, V>],
    lines: &[String],
    console: &mut Console,
) -> Result<(), Failure> {
    if let Some(header) = lines.first().filter(|_| known.is_empty() && !json) {
        console.print(&format!("{header}\n"))?;
    }
    for (row, line) in rows.iter().zip(lines.iter().skip(1)) {
        if known.get(row.key) == Some(&row.fingerprint) {
            continue;
        }
        known.insert(row.key.to_owned(), row.fingerprint.clone());
        if json { console.json_line(row.view)? } else { console.print(&format!("{line}\n"))? }
    }
    console.flush()
}

/// An interval, which may be below a second.
fn span(interval: Duration) -> String {
    if interval < Duration::from_secs(1) { format!("{}ms", interval.as_millis()) } else { brief(interval) }
}

/// What makes a job worth another line: anything but the passing of time.
fn fingerprint(view: &JobView) -> String {
    let slot = view.current.as_ref();
    let slot = slot.map(|slot| {
        (&slot.slot, slot.state, slot.attempts, slot.max_attempts, slot.lease.as_ref().map(|lease| &lease.node))
    });
    let failing = view.latest.failing.as_ref().map(|failing| (&failing.since, failing.slots));
    format!("{slot:?} {failing:?} {} {:?} {}", view.enabled, view.paused, view.schedule)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::fixture::{NOON, Scene};

    async fn appended(known: &mut BTreeMap<String, String>, scene: &Scene, json: bool) -> String {
        let (mut console, out, _) = Console::captured(false);
        let session = scene.session().await;
        let (views, _) = admin::jobs::views(&session).await.unwrap();
        let lines = jobs::grid(&views, session.now, &console).lines();
        append(known, json, &rows(&views), &lines, &mut console).unwrap();
        out.text()
    }

    #[tokio::test]
    async fn only_what_changed_gets_another_line() {
        let mut scene = Scene::at(NOON);
        scene.register("billing", "0 * * * *").await;
        scene.register("mail", "0 * * * *").await;
        let mut known = BTreeMap::new();
        let first = appended(&mut known, &scene, false).await;
        assert_eq!(
            first.lines().map(|line| line.split(' ').next().unwrap()).collect::<Vec<_>>(),
            ["JOB", "billing", "mail"]
        );
        scene.pass(1);
        assert_eq!(appended(&mut known, &scene, false).await, "", "time alone changes nothing");
        scene.claim("mail", "b").await;
        let changed = appended(&mut known, &scene, false).await;
        assert!(changed.lines().count() == 1 && changed.contains("running"), "{changed}");
    }

    #[tokio::test]
    async fn for_programs_each_change_is_one_line_of_json() {
        let scene = Scene::at(NOON);
        scene.register("billing", "0 * * * *").await;
        let written = appended(&mut BTreeMap::new(), &scene, true).await;
        assert_eq!(written.lines().count(), 1, "{written}");
        let view: serde_json::Value = serde_json::from_str(&written).unwrap();
        assert_eq!(view["job"], "billing");
    }

    #[tokio::test]
    async fn what_is_not_done_comes_first() {
        let mut scene = Scene::at(NOON);
        for job in ["a-done", "b-new", "c-running", "d-retrying"] {
            scene.register(job, "0 * * * *").await;
        }
        scene.succeed("a-done", "n").await;
        scene.claim("c-running", "n").await;
        scene.fail("d-retrying", "n").await;
        let (mut views, _) = admin::jobs::views(&scene.session().await).await.unwrap();
        views.sort_by_key(urgency);
        let names: Vec<&str> = views.iter().map(|view| view.job.as_str()).collect();
        assert_eq!(names, ["d-retrying", "c-running", "b-new", "a-done"]);
    }

    #[test]
    fn an_answer_that_does_not_come_leaves_the_table_and_says_so() {
        let table = ["JOB".to_owned(), "billing".to_owned()];
        assert_eq!(framed("head", &table, Some("not up to date")), ["head", "", "JOB", "billing", "not up to date"]);
    }
}
