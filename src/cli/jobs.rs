//! `cronward jobs`: each job with the state of its current slot.

use std::time::Duration;

use chrono::{DateTime, SubsecRound, Utc};
use comfy_table::Cell;

use crate::admin::words::{brief, harmless, instant, relative};
use crate::admin::{AdminSession, jobs};
use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::format::{self, Grid};
use crate::cli::session;
use crate::cli::store_args::StoreArgs;
use crate::cli::value_parsers;
use crate::clock::between;
use crate::job::JobName;
use crate::observe::view::{JobView, NoStart, SlotView};
use crate::slot::SlotState;
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
    let session = session::open(&args.store, console).await?;
    let (views, unreadable) = jobs::views(&session).await?;
    unreadable.iter().for_each(|error| console.warn(harmless(&error.to_string())));
    if args.output.json {
        return console.json(&views);
    }
    if views.is_empty() {
        console.note(session.catalog.no_jobs());
    }
    grid(&views, session.now, console).print(console)?;
    nobody(&session, &args.store).into_iter().for_each(|nobody| console.note(nobody));
    for view in views.iter().filter(|view| view.orphaned) {
        console.note(orphan(view, &args.store));
    }
    for missed in views.iter().filter_map(|view| missed(view.current.as_deref()?)) {
        console.note(missed);
    }
    for entry in session.catalog.iter().map(|job| &job.entry) {
        if let Some(at) = entry.command_conflict(session.now) {
            console.note(conflict(&entry.name, at));
        }
    }
    Ok(())
}

/// A slot that ended with attempts left after attempts that failed, in words.
fn missed(slot: &SlotView) -> Option<String> {
    format::missed(format_args!("{}@{}", slot.job, slot.slot), slot.attempts, slot.max_attempts, slot.state)
}

/// That no node is alive, and since when, in words; none where one is, or where no daemon is wanted.
fn nobody(session: &AdminSession, store: &StoreArgs) -> Option<String> {
    session.catalog.iter().find(|job| job.unattended && job.entry.enabled)?;
    let last = session.catalog.heartbeat.as_ref().map_or_else(
        || format!("no heartbeat in the last {}", brief(session.retention)),
        |(node, at)| {
            let ago = relative(session.now, *at);
            format!("the last heartbeat came at {} ({ago}), from node {node}", instant(at.trunc_subsecs(0)))
        },
    );
    Some(format!("no node is alive: {last}; start one with: {}", store.command("run")))
}

/// Two commands under one name, in words.
fn conflict(job: &JobName, at: DateTime<Utc>) -> String {
    format!(
        "different commands were started under the name {job}, the last time at {} or within the hour after: only the first of a slot runs; \
         give each command a --job name of its own",
        instant(at)
    )
}

/// A job that no node has in its file, in words.
fn orphan(view: &JobView, store: &StoreArgs) -> String {
    let last = |at| format!(" (a node last had it there at {}, or within the hour after)", instant(at));
    let since = view.last_planned.map(last).unwrap_or_default();
    let forget = store.command(format_args!("forget {}", view.job));
    format!("{} is not in any live node's file{since}; `{forget}` removes the job from this list", view.job)
}

/// The table; its last column is there where a job is failing.
pub(crate) fn grid(views: &[JobView], now: DateTime<Utc>, console: &Console) -> Grid {
    let is_failing = views.iter().any(|view| view.failing().is_some());
    let columns = ["JOB", "SLOT", "STATE", "ATTEMPTS", "HOLDER", "NEXT", "FAILING"];
    let mut grid = Grid::new(console, if is_failing { &columns } else { &columns[..6] });
    for view in views {
        let slot = view.current.as_ref();
        let lease = slot.and_then(|slot| slot.lease.as_ref());
        let mut cells = vec![
            format::text(view.job.as_str()),
            format::maybe(slot.map(|slot| slot.slot.as_str())),
            state(view, console),
            format::maybe(slot.map(|slot| format::attempts(slot.attempts, slot.max_attempts, slot.state))),
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
        Some(SlotState::Pending | SlotState::Retrying) if view.no_start == Some(NoStart::TooLate) => {
            format::text("too late")
        }
        Some(SlotState::Pending | SlotState::Retrying)
            if matches!(view.no_start, Some(NoStart::NoNode | NoStart::NoLiveNode)) =>
        {
            format::text("no node")
        }
        Some(SlotState::Pending) if view.no_start == Some(NoStart::NotDue) => format::text(not_due(view.first_seen)),
        Some(state) => format::state(console, state),
        None => format::text("-"),
    }
}

/// Of a slot whose scheduled times lie before the cluster first knew the job.
fn not_due(first_seen: Option<DateTime<Utc>>) -> String {
    let before = |at: DateTime<Utc>| format!("not due before {}", instant(at.trunc_subsecs(0)));
    first_seen.map_or_else(|| "not due".to_owned(), before)
}

/// How many slots ended without success since the last that is done, and how long ago the first of them began.
fn failing(view: &JobView, now: DateTime<Utc>) -> Option<String> {
    let (since, slots) = view.failing()?;
    Some(format!("{slots} for {}", brief(between(since.start(), now))))
}

/// When something happens next: the end of a wait within the slot, or the next tick.
fn next(view: &JobView, now: DateTime<Utc>) -> Option<String> {
    let slot = view.current.as_ref().filter(|_| view.no_start.is_none() && view.paused.is_none());
    let retry = slot.filter(|slot| slot.state == SlotState::Retrying).and_then(|slot| slot.retry_in_s);
    match retry.map(std::time::Duration::try_from_secs_f64) {
        Some(Ok(wait)) => Some(format!("retry in {}", brief(wait))),
        _ => {
            let tick = view.next_tick?;
            let is_kept = view.paused.as_ref().is_some_and(|pause| pause.until.is_none_or(|end| end > tick));
            Some(if is_kept { "paused".to_owned() } else { relative(now, tick) })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::admin::fixture::{self, NOON, Scene};
    use crate::observe::view::{FailingView, LatestView, PauseView};
    use crate::slot::Verdict;
    use crate::store::{CrontabCommand, JobEntry};

    fn view(name: &str, current: Option<SlotView>) -> JobView {
        JobView {
            current: current.map(Arc::new),
            ..JobView::of(&fixture::entry(name), Some("2026-11-21T13:00:00Z".parse().unwrap()))
        }
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
            "JOB      SLOT            STATE     ATTEMPTS  HOLDER  NEXT         FAILING\n\
             billing  2026-11-21T12Z  running   2/3       b       in 48m       -\n\
             mail     2026-11-21T12Z  retrying  1/3       -       retry in 8s  -\n\
             push     2026-11-21T12Z  done      1/3       -       in 48m       -\n\
             report   2026-11-21T12Z  pending   0/3       -       in 48m       -\n\
             sweep    2026-11-21T12Z  failed    3/3       -       in 48m       1 for 12m\n"
        );
    }

    #[test]
    fn a_job_that_the_cluster_first_knew_after_its_time_says_when() {
        let slot = Some(SlotView::of(&fixture::untouched(), fixture::at(NOON), 3));
        let first_seen = fixture::at("2026-11-21T12:06:00Z");
        let new = JobView { no_start: Some(NoStart::NotDue), first_seen: Some(first_seen), ..view("new", slot) };
        let said = shown(&[new]);
        assert!(said.contains(&format!("not due before {}", instant(first_seen))), "{said}");
    }

    #[test]
    fn a_job_that_cannot_start_says_why() {
        let slot = Some(SlotView::of(&fixture::untouched(), fixture::at(NOON), 3));
        let disabled = JobView { enabled: false, next_tick: None, ..view("off", slot.clone()) };
        let waits = Some(SlotView::of(&fixture::waiting(), fixture::at(NOON), 3));
        let kept = |name, no_start| JobView { no_start: Some(no_start), ..view(name, waits.clone()) };
        let paused = JobView { paused: PauseView::of(&fixture::pause(), fixture::at(NOON)), ..view("still", slot) };
        assert_eq!(
            shown(&[
                disabled,
                kept("late", NoStart::TooLate),
                kept("lone", NoStart::NoNode),
                paused,
                view("young", None)
            ]),
            "JOB    SLOT            STATE     ATTEMPTS  HOLDER  NEXT\n\
             off    2026-11-21T12Z  disabled  0/3       -       -\n\
             late   2026-11-21T12Z  too late  1/3       -       in 48m\n\
             lone   2026-11-21T12Z  no node   1/3       -       in 48m\n\
             still  2026-11-21T12Z  paused    0/3       -       paused\n\
             young  -               -         -         -       in 48m\n"
        );
    }

    #[tokio::test]
    async fn a_job_that_left_the_file_of_every_live_node_says_so_and_has_no_next_tick() {
        let mut scene = Scene::at("2026-11-21T12:10:00Z");
        scene.register("billing", "0 * * * *").await;
        scene.register("mail", "0 * * * *").await;
        scene.node("a", &["billing", "mail"]).await;
        let states = async |scene: &Scene| {
            let (views, _) = jobs::views(&scene.session().await).await.unwrap();
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
        let (views, _) = jobs::views(&session).await.unwrap();
        let (mut console, out, _) = Console::captured(false);
        grid(&views, session.now, &console).print(&mut console).unwrap();
        let line = out.text().lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(line, "billing - not planned - - -");
        assert_eq!(
            orphan(&views[0], &StoreArgs::default()),
            "billing is not in any live node's file (a node last had it there at 2026-11-21T12:10:00Z, or within the hour after); \
             `cronward forget billing` removes the job from this list"
        );
    }

    #[test]
    fn a_slot_that_was_missed_after_attempts_does_not_read_as_if_nothing_had_run() {
        let over = fixture::at("2026-11-21T13:10:00Z");
        let slot = |record| Some(SlotView::of(&record, over, 3));
        let tried = crate::slot::SlotRecord { mark: crate::slot::Mark::Free, ..fixture::waiting() };
        let views = [view("billing", slot(tried)), view("quiet", slot(fixture::untouched()))];
        let text = shown(&views);
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1][..5], ["billing", "2026-11-21T12Z", "missed", "1/3", "failed"]);
        assert_eq!(rows[2][..5], ["quiet", "2026-11-21T12Z", "missed", "0/3", "-"]);
        assert_eq!(
            views.iter().filter_map(|view| missed(view.current.as_deref()?)).collect::<Vec<_>>(),
            ["billing@2026-11-21T12Z was missed: attempt 1 of 3 did not succeed, no retry before the slot ended"]
        );
    }

    #[tokio::test]
    async fn where_no_node_is_alive_no_run_is_announced() {
        let mut scene = Scene::at("2026-11-21T12:10:00Z");
        for job in ["billing", "mail"] {
            scene.register(job, "0 * * * *").await;
        }
        let by_hand = JobEntry { origin: JobOrigin::Crontab, enabled: false, ..fixture::entry("push") };
        scene.store.register(&[by_hand]).await.unwrap();
        let lines = async |scene: &Scene| {
            let session = scene.session().await;
            let (views, _) = jobs::views(&session).await.unwrap();
            let (mut console, out, _) = Console::captured(false);
            grid(&views, session.now, &console).print(&mut console).unwrap();
            let single = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            (out.text().lines().skip(1).map(single).collect::<Vec<_>>(), nobody(&session, &StoreArgs::default()))
        };
        scene.node("a", &["billing", "mail"]).await;
        scene.succeed("mail", "a").await;
        let alive = ["billing 2026-11-21T12Z pending 0/3 - in 50m", "mail 2026-11-21T12Z done 1/3 - in 50m"];
        let (rows, note) = lines(&scene).await;
        assert_eq!((rows[..2].to_vec(), note), (alive.map(str::to_owned).to_vec(), None));
        let crontab = rows[2].clone();
        scene.pass(5);
        let (rows, note) = lines(&scene).await;
        assert_eq!(rows[0], "billing 2026-11-21T12Z no node 0/3 - -");
        assert_eq!(rows[1], "mail 2026-11-21T12Z done 1/3 - -");
        assert_eq!(rows[2], crontab, "what no daemon starts waits for none");
        assert_eq!(
            note.as_deref(),
            Some(
                "no node is alive: the last heartbeat came at 2026-11-21T12:10:00Z (5m ago), from node a; start one with: cronward run"
            )
        );
    }

    #[tokio::test]
    async fn where_no_node_was_ever_heard_of_that_is_said() {
        let scene = Scene::at("2026-11-21T12:10:00Z");
        scene.register("billing", "0 * * * *").await;
        let note = nobody(&scene.session().await, &StoreArgs::default());
        assert_eq!(
            note.as_deref(),
            Some("no node is alive: no heartbeat in the last 7d; start one with: cronward run")
        );
    }

    #[test]
    fn a_current_slot_that_failed_counts_among_those_that_failed_in_a_row() {
        let slot = |record| Some(SlotView::of(&record, fixture::at(NOON), 3));
        let latest = || LatestView { failing: Some(failing("2026-11-21T10Z", 2)), ..LatestView::default() };
        let said = |view: JobView| super::failing(&view, fixture::at(NOON));
        let known = |record| JobView { latest: latest(), ..view("billing", slot(record)) };
        assert_eq!(said(known(fixture::failed())).as_deref(), Some("3 for 2h"), "its verdict comes when it is over");
        assert_eq!(said(known(fixture::waiting())).as_deref(), Some("2 for 2h"));
        assert_eq!(said(view("billing", slot(fixture::failed()))).as_deref(), Some("1 for 12m"));
        assert_eq!(said(view("billing", slot(fixture::untouched()))), None);
        // The verdict is recorded: it is among them.
        let counted = FailingView { last: "2026-11-21T12Z".to_owned(), ..failing("2026-11-21T10Z", 3) };
        let latest = LatestView { failing: Some(counted), ..LatestView::default() };
        let settled = JobView { latest, ..view("billing", slot(fixture::failed())) };
        assert_eq!(said(settled).as_deref(), Some("3 for 2h"));
        assert!(shown(&[view("billing", slot(fixture::failed()))]).contains("FAILING"), "the column is there for it");
    }

    #[test]
    fn two_commands_under_one_name_are_named_for_two_days() {
        let at = fixture::at("2026-11-21T14:00:00Z");
        let command = CrontabCommand { digest: "00c0".to_owned(), conflict: Some(at) };
        let entry = JobEntry { command: Some(command), ..fixture::entry("push") };
        assert_eq!(entry.command_conflict(fixture::at("2026-11-23T13:59:59Z")), Some(at));
        assert_eq!(entry.command_conflict(fixture::at("2026-11-23T14:00:00Z")), None);
        assert_eq!(
            conflict(&entry.name, at),
            "different commands were started under the name push, the last time at 2026-11-21T14:00:00Z or within the hour after: only \
             the first of a slot runs; give each command a --job name of its own"
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
}
