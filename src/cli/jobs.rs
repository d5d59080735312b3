//! `cronward jobs`: each job with the state of its current slot.

use std::time::Duration;

use chrono::{DateTime, Utc};
use comfy_table::Cell;

use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::format::{self, Grid, brief, instant, relative};
use crate::cli::lookup::{choose, is_touched};
use crate::cli::session::{KnownJob, StoreSession};
use crate::cli::store_args::StoreArgs;
use crate::cli::value_parsers;
use crate::clock::between;
use crate::job::JobName;
use crate::observe::view::{JobView, LatestView, PauseView, SlotView};
use crate::slot::{Slot, SlotKey, SlotState};
use crate::store::JobOrigin;

/// List the jobs with the state of their current slots
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward jobs --store redis://127.0.0.1/")]
pub(crate) struct JobsArgs {
    /// Keep listing: redraw on a terminal; elsewhere print a line for each change (with --json, a JSON line)
    #[arg(long, short)]
    pub(crate) watch: bool,
    /// How often to poll the store; with notifications from the store, changes are shown at once
    #[arg(long, value_name = "DURATION", default_value = "2s", requires = "watch", value_parser = value_parsers::span)]
    pub(crate) interval: Duration,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Lists the jobs of the file and of the store's registry.
pub(crate) async fn list(args: &JobsArgs, console: &mut Console) -> Result<(), Failure> {
    let session = StoreSession::open(&args.store, console).await?;
    let views = views(&session).await?;
    if args.output.json {
        return console.json(&views);
    }
    if views.is_empty() {
        console.note(session.catalog.no_jobs());
    }
    grid(&views, session.now, console).print(console)?;
    for view in views.iter().filter(|view| view.orphaned) {
        console.note(orphan(view, &args.store));
    }
    Ok(())
}

/// A job that no node has in its file, in words.
fn orphan(view: &JobView, store: &StoreArgs) -> String {
    let since = view.last_planned.map(|at| format!(" since {}", instant(at))).unwrap_or_default();
    let forget = store.command(format_args!("forget {}", view.job));
    format!("{} is not in any live node's file{since}; `{forget}` removes the job from this list", view.job)
}

/// Every job, with its slot, its pause and what it has come to lately.
pub(crate) async fn views(session: &StoreSession) -> Result<Vec<JobView>, Failure> {
    let pauses = session.store.pauses().await?;
    let names: Vec<JobName> = session.catalog.iter().map(|job| job.entry.name.clone()).collect();
    let latest = session.store.latest(&names).await?;
    let candidates: Vec<Vec<Slot>> = session.catalog.iter().map(|job| job.current(session.now)).collect();
    let mut records = session.inspect(&candidates.concat()).await?.into_iter();
    let mut views = Vec::new();
    for ((job, slots), latest) in session.catalog.iter().zip(candidates).zip(&latest) {
        let current = choose(records.by_ref().take(slots.len()).collect());
        let pause = pauses.iter().find(|(name, _)| *name == job.entry.name);
        views.push(JobView {
            paused: pause.and_then(|(_, pause)| PauseView::of(pause, session.now)),
            current: current
                .filter(|record| !job.orphaned || is_touched(record))
                .map(|record| SlotView::of(&record, session.now, job.entry.max_attempts)),
            orphaned: job.orphaned,
            latest: LatestView::of(latest),
            ..JobView::of(&job.entry, next_tick(job, session.now))
        });
    }
    Ok(views)
}

/// The next tick; none for a job that is not planned.
fn next_tick(job: &KnownJob, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    (job.entry.enabled && !job.orphaned).then(|| job.timetable.schedule().next_after(now)).flatten()
}

/// The table; its last column is there where a job is failing.
pub(crate) fn grid(views: &[JobView], now: DateTime<Utc>, console: &Console) -> Grid {
    let is_failing = views.iter().any(|view| view.latest.failing.is_some());
    let columns = ["JOB", "SLOT", "STATE", "ATTEMPTS", "HOLDER", "NEXT", "FAILING"];
    let mut grid = Grid::new(console, if is_failing { &columns } else { &columns[..6] });
    for view in views {
        let slot = view.current.as_ref();
        let lease = slot.and_then(|slot| slot.lease.as_ref());
        let mut cells = vec![
            format::text(view.job.as_str()),
            format::maybe(slot.map(|slot| slot.slot.as_str())),
            state(view, console),
            format::maybe(slot.map(|slot| format!("{}/{}", slot.attempts, slot.max_attempts))),
            format::maybe(lease.map(|lease| lease.node.as_str())),
            format::maybe(next(view, now)),
        ];
        cells.extend(is_failing.then(|| format::maybe(failing(view, now))));
        grid.row(cells);
    }
    grid
}

/// The slot's state, unless nothing can happen in it: then why.
fn state(view: &JobView, console: &Console) -> Cell {
    let state = view.current.as_ref().map(|slot| slot.state);
    match state {
        Some(SlotState::Pending | SlotState::Retrying | SlotState::Missed) | None if view.orphaned => {
            format::text("not planned")
        }
        Some(SlotState::Pending | SlotState::Retrying) if view.paused.is_some() => format::text("paused"),
        Some(SlotState::Pending) | None if !view.enabled && view.origin == JobOrigin::File => format::text("disabled"),
        Some(state) => format::state(console, state),
        None => format::text("-"),
    }
}

/// How many slots ended without success since the last that is done, and how long ago the first of them began.
fn failing(view: &JobView, now: DateTime<Utc>) -> Option<String> {
    let failing = view.latest.failing.as_ref()?;
    let since = failing.since.parse::<SlotKey>().ok()?.start();
    Some(format!("{} for {}", failing.slots, brief(between(since, now))))
}

/// When something happens next: the end of a wait within the slot, or the next tick.
fn next(view: &JobView, now: DateTime<Utc>) -> Option<String> {
    let slot = view.current.as_ref();
    let retry = slot.filter(|slot| slot.state == SlotState::Retrying).and_then(|slot| slot.retry_in_s);
    match retry.map(std::time::Duration::try_from_secs_f64) {
        Some(Ok(wait)) => Some(format!("retry in {}", brief(wait))),
        _ => view.next_tick.map(|tick| relative(now, tick)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::fixture::{self, NOON, Scene};
    use crate::observe::view::FailingView;
    use crate::slot::Verdict;

    fn view(name: &str, current: Option<SlotView>) -> JobView {
        JobView { current, ..JobView::of(&fixture::entry(name), Some("2026-11-21T13:00:00Z".parse().unwrap())) }
    }

    fn shown(views: &[JobView]) -> String {
        let (mut console, out, _) = Console::captured(false);
        grid(views, fixture::at(NOON), &console).print(&mut console).unwrap();
        out.text()
    }

    #[test]
    fn each_job_has_a_line_with_the_state_of_its_slot() {
        let slot = |record| Some(SlotView::of(&record, fixture::at(NOON), 3));
        let views = [
            view("billing", slot(fixture::running())),
            view("mail", slot(fixture::waiting())),
            view("push", slot(fixture::done())),
            view("report", slot(fixture::untouched())),
            view("sweep", slot(fixture::failed())),
        ];
        assert_eq!(
            shown(&views),
            "JOB      SLOT            STATE     ATTEMPTS  HOLDER  NEXT\n\
             billing  2026-11-21T12Z  running   2/3       b       in 48m\n\
             mail     2026-11-21T12Z  retrying  1/3       -       retry in 8s\n\
             push     2026-11-21T12Z  done      1/3       -       in 48m\n\
             report   2026-11-21T12Z  pending   0/3       -       in 48m\n\
             sweep    2026-11-21T12Z  failed    3/3       -       in 48m\n"
        );
    }

    #[test]
    fn a_job_that_cannot_start_says_why() {
        let slot = Some(SlotView::of(&fixture::untouched(), fixture::at(NOON), 3));
        let disabled = JobView { enabled: false, next_tick: None, ..view("off", slot.clone()) };
        let paused = JobView { paused: PauseView::of(&fixture::pause(), fixture::at(NOON)), ..view("still", slot) };
        assert_eq!(
            shown(&[disabled, paused, view("young", None)]),
            "JOB    SLOT            STATE     ATTEMPTS  HOLDER  NEXT\n\
             off    2026-11-21T12Z  disabled  0/3       -       -\n\
             still  2026-11-21T12Z  paused    0/3       -       in 48m\n\
             young  -               -         -         -       in 48m\n"
        );
    }

    #[tokio::test]
    async fn a_job_is_shown_with_its_pause_and_ticks_only_while_it_is_planned() {
        let scene = Scene::at(NOON);
        scene.register("billing", "0 * * * *").await;
        let off = crate::store::JobEntry { enabled: false, ..fixture::entry("off") };
        scene.store.register(&[off]).await.unwrap();
        let until = Some(fixture::at("2026-11-21T12:30:00Z"));
        let billing = fixture::entry("billing").name;
        scene.store.pause(&billing, until, &fixture::audit("pause")).await.unwrap();

        let shown = views(&scene.session().await).await.unwrap();
        assert_eq!(shown[0].paused.as_ref().map(|pause| (pause.until, &*pause.who)), Some((until, "alice")));
        assert_eq!(shown[0].next_tick, Some(fixture::at("2026-11-21T13:00:00Z")));
        assert_eq!((shown[1].paused.as_ref(), shown[1].next_tick), (None, None));

        scene.pass(20);
        let later = views(&scene.session().await).await.unwrap();
        assert_eq!(later[0].paused, None, "a pause that is over is no pause");
    }

    #[tokio::test]
    async fn a_job_that_left_the_file_of_every_live_node_says_so_and_has_no_next_tick() {
        let mut scene = Scene::at("2026-11-21T12:10:00Z");
        scene.register("billing", "0 * * * *").await;
        scene.register("mail", "0 * * * *").await;
        scene.node("a", &["billing", "mail"]).await;
        let states = async |scene: &Scene| {
            let views = views(&scene.session().await).await.unwrap();
            views.iter().map(|view| (view.orphaned, view.next_tick.is_some(), view.last_planned)).collect::<Vec<_>>()
        };
        let began = fixture::at("2026-11-21T12:10:00Z");
        assert_eq!(states(&scene).await, [(false, true, Some(began)), (false, true, Some(began))]);

        // Nobody alive is nobody who could have left it out.
        scene.pass(60);
        assert!(states(&scene).await.iter().all(|(orphaned, ..)| !orphaned));
        scene.node("b", &["mail"]).await;
        assert_eq!(
            states(&scene).await,
            [(true, false, Some(began)), (false, true, Some(fixture::at("2026-11-21T13:10:00Z")))]
        );
        let session = scene.session().await;
        let views = views(&session).await.unwrap();
        let (mut console, out, _) = Console::captured(false);
        grid(&views, session.now, &console).print(&mut console).unwrap();
        let line = out.text().lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(line, "billing - not planned - - -");
        assert_eq!(
            orphan(&views[0], &StoreArgs::default()),
            "billing is not in any live node's file since 2026-11-21T12:10:00Z; `cronward forget billing` removes the job from \
             this list"
        );
    }

    #[test]
    fn the_table_fits_80_columns() {
        let slot = Some(SlotView::of(&fixture::running(), fixture::at(NOON), 3));
        let failing = Some(failing("2026-11-10T12Z", 12));
        let latest = LatestView { failing, ..LatestView::default() };
        for view in [view("hourly-push-eu-1", slot.clone()), JobView { latest, ..view("hourly-push-eu-1", slot) }] {
            for line in shown(&[view]).lines() {
                assert!(line.len() <= 80, "{line}");
            }
        }
    }

    fn failing(since: &str, slots: u32) -> FailingView {
        let (since, last) = (since.to_owned(), "2026-11-21T11Z".to_owned());
        FailingView { since, last, verdict: Verdict::Failed, slots }
    }

    #[test]
    fn a_job_that_is_failing_says_how_many_slots_and_for_how_long() {
        let latest = LatestView { failing: Some(failing("2026-11-21T09Z", 3)), ..LatestView::default() };
        assert_eq!(
            shown(&[JobView { latest, ..view("mail", None) }, view("push", None)]),
            "JOB   SLOT  STATE  ATTEMPTS  HOLDER  NEXT    FAILING\n\
             mail  -     -      -         -       in 48m  3 for 3h\n\
             push  -     -      -         -       in 48m  -\n"
        );
    }

    #[tokio::test]
    async fn what_a_job_has_come_to_is_the_stores_word() {
        let scene = Scene::at(NOON);
        scene.register("billing", "0 * * * *").await;
        scene.register("mail", "0 * * * *").await;
        let missed = Slot::parse("mail", "2026-11-21T11Z", "2026-11-21T12Z").unwrap();
        scene.store.close(&missed, 3, &crate::job::NodeName::new("a").unwrap()).await.unwrap();
        let shown = views(&scene.session().await).await.unwrap();
        assert_eq!(shown[0].latest, LatestView::default());
        let failing = FailingView { verdict: Verdict::Missed, ..failing("2026-11-21T11Z", 1) };
        assert_eq!(shown[1].latest.failing, Some(failing));
    }
}
