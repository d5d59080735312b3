//! `cronward attempts`: the attempt counters of slots that are not done, newest first. `cronward logs J@S`: the output of one attempt.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::admin::attempts::{self, Folded, Listed, Wanted};
use crate::admin::lookup::{self, SlotRef};
use crate::admin::words::{brief, ended_between, ending, ending_with_cause, harmless, harmless_lines, relative};
use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::format::{self, Grid};
use crate::cli::session;
use crate::cli::store_args::StoreArgs;
use crate::cli::value_parsers::{self, StateWord};
use crate::job::{JobName, MAX_ATTEMPTS_LIMIT};
use crate::observe::view::{RunView, SlotView};
use crate::slot::{Attempt, OutputLoss, OutputTail, RunRecord, SlotRecord, SlotState};

/// List the slots that are not done, with their attempt counters, newest first
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward attempts --job billing --since 7d --state failed,missed")]
pub(crate) struct AttemptsArgs {
    /// Only slots of this job; may be repeated
    #[arg(long, value_name = "JOB")]
    pub(crate) job: Vec<JobName>,
    /// How far back, like 30m, 24h or 7d
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = value_parsers::span)]
    pub(crate) since: Duration,
    /// Also list slots that are done
    #[arg(long)]
    pub(crate) all: bool,
    /// Only slots in this state; several with commas, or repeated
    #[arg(long, value_name = "STATE", value_delimiter = ',', conflicts_with = "all")]
    pub(crate) state: Vec<StateWord>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

impl AttemptsArgs {
    fn wanted(&self) -> Wanted {
        let (jobs, states) = (self.job.clone(), self.state.iter().map(|word| SlotState::from(*word)).collect());
        Wanted { jobs, since: self.since, all: self.all, states }
    }
}

/// Lists the slots of the jobs and the time that were asked for.
pub(crate) async fn list(args: &AttemptsArgs, console: &mut Console) -> Result<(), Failure> {
    let session = session::open(&args.store, console).await?;
    let (listed, unreadable) = attempts::collect(&session, &args.wanted()).await?;
    unreadable.iter().for_each(|error| console.warn(harmless(&error.to_string())));
    if args.output.json {
        // One slot after the other: their outputs together may be more than fits into memory.
        let view = async |Listed { mut record, max_attempts, .. }| {
            session.read_outputs(&mut record).await?;
            Ok(SlotView::of(&record, session.now, max_attempts))
        };
        return console.json_array(listed, view).await;
    }
    if session.catalog.is_empty() {
        console.note(session.catalog.no_jobs());
    } else if listed.is_empty() {
        console.note(nothing(args));
    }
    print(&listed, session.now, console)
}

/// What is said where nothing is listed.
fn nothing(args: &AttemptsArgs) -> String {
    let since = brief(args.since);
    if args.all {
        return format!("no slots in the last {since}");
    }
    if args.state.is_empty() {
        return format!("nothing unfinished in the last {since} (--all also lists completed slots)");
    }
    let states: Vec<&str> = args.state.iter().map(|word| SlotState::from(*word).as_str()).collect();
    format!("no {} slots in the last {since}", states.join(" or "))
}

/// The table.
fn print(listed: &[Listed], now: DateTime<Utc>, console: &mut Console) -> Result<(), Failure> {
    let mut grid = Grid::new(console, &["JOB", "SLOT", "STATE", "ATTEMPTS", "LAST", "NODE", "WHEN"]);
    for Folded { newest, oldest, slots } in attempts::fold(listed, now) {
        let Listed { record, max_attempts, .. } = newest;
        let (last, state) = (record.runs.last(), record.state(now, *max_attempts));
        let when = last.map(|run| run.ended_at.or(run.started_at).unwrap_or(run.claimed_at));
        grid.row(vec![
            format::text(record.slot.job().as_str()),
            format::text(keys(newest, oldest)),
            format::state(console, state),
            format::text(format::attempts(record.used(), *max_attempts, state)),
            format::maybe(
                last.map(|run| ending(record, run)).or_else(|| (slots > 1).then(|| format!("{slots} slots"))),
            ),
            format::maybe(last.map(|run| run.node.as_str())),
            format::maybe(when.map(|when| relative(now, when))),
        ]);
    }
    grid.print(console)
}

/// The key of a row's slot, or of its oldest and its newest.
fn keys(newest: &Listed, oldest: &Listed) -> String {
    let [newest, oldest] = [newest, oldest].map(|listed| listed.record.slot.key().to_string());
    if newest == oldest { newest } else { format!("{oldest} to {newest}") }
}

/// Show the output of an attempt, by default of the last one
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward logs billing@-1 --attempt 2")]
pub(crate) struct LogsArgs {
    /// The slot: billing@2026-11-21T14Z, billing for the current slot, billing@-1 for the previous slot
    #[arg(value_name = "JOB[@SLOT]")]
    pub(crate) slot: SlotRef,
    /// The number of the attempt [default: the last]
    #[arg(long, value_name = "N", value_parser = value_parsers::number(1..=MAX_ATTEMPTS_LIMIT))]
    pub(crate) attempt: Option<Attempt>,
    /// The attempt with its output as JSON with documented, stable fields
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Writes the output as it is; to a terminal, with everything escaped that could do more than show text.
pub(crate) async fn logs(args: &LogsArgs, console: &mut Console) -> Result<(), Failure> {
    let session = session::open(&args.store, console).await?;
    let (job, record) = lookup::find(&session, &args.slot).await?;
    let Some(mut run) = choose(&record, args.attempt)?.cloned() else {
        let yet = if session.now < record.slot.end() { " yet" } else { "" };
        console.note(format_args!("{} has no attempt{yet}", record.slot));
        return if args.json { console.json(&None::<RunView>) } else { Ok(()) };
    };
    session.read_output(&record.slot, &mut run).await?;
    if args.json {
        return console.json(&RunView::of(&record, &run));
    }
    let of = job.entry.max_attempts;
    let missed = format::missed(&record.slot, record.used(), of, record.state(session.now, of));
    missed.into_iter().for_each(|missed| console.note(missed));
    if let Some(between) = ended_between(&run) {
        console.note(format_args!("attempt {} of {} ended {between}", run.attempt, record.slot));
    }
    match &run.output {
        Some(output) if output.is_lost() => {
            console.note(format_args!("attempt {} of {}: output {}", run.attempt, record.slot, output.lost()));
            Ok(())
        }
        Some(output) if !output.text.is_empty() => write(output, console),
        _ => {
            let (attempt, slot) = (run.attempt, &record.slot);
            console.note(format_args!(
                "attempt {attempt} of {slot} has no output ({})",
                harmless(&ending_with_cause(&record, &run))
            ));
            Ok(())
        }
    }
}

/// The attempt that is asked for; none when the slot has no attempt at all.
fn choose(record: &SlotRecord, wanted: Option<Attempt>) -> Result<Option<&RunRecord>, Failure> {
    let Some(wanted) = wanted else { return Ok(record.runs.last()) };
    let found = record.runs.iter().find(|run| run.attempt == wanted);
    found.map(Some).ok_or_else(|| {
        let known: Vec<String> = record.runs.iter().map(|run| run.attempt.to_string()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Failure::Usage(format!("{} has no attempt {wanted}; its attempts are: {known}", record.slot))
    })
}

fn write(output: &OutputTail, console: &mut Console) -> Result<(), Failure> {
    if output.dropped_bytes > 0 {
        let reason = output.loss.map_or("output_limit", OutputLoss::reason);
        console.note(format_args!("the first {} bytes were not kept ({reason})", output.dropped_bytes));
    }
    if !console.terminal {
        return console.print(&output.text);
    }
    for line in harmless_lines(&output.text) {
        console.print(&line)?;
        console.print("\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    use clap::Parser;

    use crate::admin::AdminError;
    use crate::admin::fixture::{self, NOON, Scene};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: AttemptsArgs,
    }

    /// The table for these flags, line by line, single-spaced.
    async fn listed(scene: &Scene, flags: &[&str]) -> Vec<String> {
        let args = Line::parse_from([&["attempts"], flags].concat()).args;
        let session = scene.session().await;
        let (mut console, out, _) = Console::captured(false);
        print(&attempts::collect(&session, &args.wanted()).await.unwrap().0, session.now, &mut console).unwrap();
        out.text().lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    #[tokio::test]
    async fn slots_that_are_not_done_are_listed_newest_first_from_when_the_job_was_known() {
        let mut scene = Scene::at("2026-11-21T11:59:00Z");
        scene.register("billing", "0 * * * *").await;
        scene.pass(1);
        scene.fail("billing", "a").await;
        scene.pass(120);
        scene.fail("billing", "a").await;
        scene.claim("billing", "b").await;
        scene.pass(12);
        let wanted = [
            "billing 2026-11-21T14Z retrying 2/3 crashed b 12m ago",
            "billing 2026-11-21T13Z missed 0/3 - - -",
            "billing 2026-11-21T12Z missed 1/3 failed exit 1 a 2h ago",
            "billing 2026-11-21T11Z missed 0/3 - - -",
        ];
        assert_eq!(listed(&scene, &[]).await, wanted);
        assert_eq!(listed(&scene, &["--since", "1h"]).await, wanted[..2], "a slot that touches the span is in it");
        assert_eq!(listed(&scene, &["--state", "retrying"]).await, wanted[..1]);
    }

    #[tokio::test]
    async fn what_is_done_is_left_out_unless_asked_for() {
        let mut scene = Scene::at("2026-11-21T12:00:00Z");
        scene.register("billing", "0 * * * *").await;
        scene.succeed("billing", "a").await;
        assert_eq!(listed(&scene, &[]).await, [""; 0]);
        for flags in [&["--all"][..], &["--state", "done"]] {
            assert_eq!(listed(&scene, flags).await, ["billing 2026-11-21T12Z done 1/3 success a 0s ago"]);
        }
    }

    #[tokio::test]
    async fn a_slot_whose_tick_is_still_to_come_is_nobodys_failure() {
        let scene = Scene::at("2026-11-21T12:10:00Z");
        scene.register("billing", "30 * * * *").await;
        assert_eq!(listed(&scene, &["--all"]).await, [""; 0]);
        scene.pass(21);
        assert_eq!(listed(&scene, &[]).await, ["billing 2026-11-21T12Z pending 0/3 - - -"]);
    }

    #[tokio::test]
    async fn a_slot_that_ran_without_a_tick_is_listed_while_it_is_current() {
        let mut scene = Scene::at("2026-11-21T12:10:00Z");
        scene.register("billing", "0 3 * * *").await;
        scene.fail("billing", "a").await;
        assert_eq!(listed(&scene, &[]).await, ["billing 2026-11-21T12Z retrying 1/3 exit 1 a 0s ago"]);
    }

    #[tokio::test]
    async fn more_slots_than_one_batch_are_all_listed() {
        let scene = Scene::at("2026-11-01T00:00:00Z");
        scene.register("billing", "0 * * * *").await;
        scene.pass(60 * 24 * 6);
        let wanted = Wanted { jobs: vec![], since: Duration::from_secs(7 * 86_400), all: false, states: vec![] };
        assert_eq!(attempts::collect(&scene.session().await, &wanted).await.unwrap().0.len(), 24 * 6 + 1);
    }

    #[tokio::test]
    async fn a_time_that_contains_too_many_slots_is_refused_before_they_are_computed() {
        let scene = Scene::at("2026-11-21T12:00:00Z");
        scene.register("billing", "0 * * * *").await;
        let collected = async |since| {
            let wanted = Wanted { jobs: vec![], since: Duration::from_secs(since), all: false, states: vec![] };
            attempts::collect_within(&scene.session().await, &wanted, 30).await.map(drop)
        };
        assert!(collected(24 * 3_600).await.is_ok());
        let refused = collected(100_000_000_000).await.unwrap_err();
        assert!(matches!(refused, AdminError::ManySlots(30)), "{refused}");
    }

    #[tokio::test]
    async fn neighbouring_slots_without_an_attempt_share_a_row() {
        let mut scene = Scene::at("2026-11-21T12:00:00Z");
        scene.register("billing", "0 * * * *").await;
        scene.register("mail", "0 * * * *").await;
        scene.pass(180);
        scene.fail("billing", "a").await;
        scene.pass(60);
        scene.succeed("mail", "a").await;
        scene.pass(125);
        let wanted = [
            "billing 2026-11-21T18Z pending 0/3 - - -",
            "mail 2026-11-21T18Z pending 0/3 - - -",
            "billing 2026-11-21T16Z to 2026-11-21T17Z missed 0/3 2 slots - -",
            "mail 2026-11-21T17Z missed 0/3 - - -",
            "billing 2026-11-21T15Z missed 1/3 failed exit 1 a 3h ago",
            "mail 2026-11-21T12Z to 2026-11-21T15Z missed 0/3 4 slots - -",
            "billing 2026-11-21T12Z to 2026-11-21T14Z missed 0/3 3 slots - -",
        ];
        assert_eq!(listed(&scene, &[]).await, wanted, "an attempt, or a slot that is done, ends a row");
    }

    #[test]
    fn a_slot_has_a_line_with_its_counter_and_its_last_attempt() {
        let (mut console, out, _) = Console::captured(false);
        let records = [fixture::running(), fixture::waiting(), fixture::failed(), fixture::untouched()];
        let listed: Vec<Listed> = records.map(|record| Listed { record, max_attempts: 3, position: 0 }).into();
        print(&listed, fixture::at(NOON), &mut console).unwrap();
        assert_eq!(
            out.text(),
            "JOB      SLOT            STATE     ATTEMPTS  LAST     NODE  WHEN\n\
             billing  2026-11-21T12Z  running   2/3       running  b     11m ago\n\
             billing  2026-11-21T12Z  retrying  1/3       exit 1   a     11m ago\n\
             billing  2026-11-21T12Z  failed    3/3       timeout  c     9m ago\n\
             billing  2026-11-21T12Z  pending   0/3       -        -     -\n"
        );
    }

    const HOSTILE: &str = "a\x1b[2J\r\nb";

    fn written(terminal: bool, dropped_bytes: u64) -> (String, String) {
        let (mut console, out, err) = Console::captured(terminal);
        write(&OutputTail { text: HOSTILE.to_owned(), dropped_bytes, loss: None }, &mut console).unwrap();
        (out.text(), err.text())
    }

    #[test]
    fn a_pipe_gets_the_output_as_it_is_and_a_terminal_nothing_that_could_harm_it() {
        assert_eq!(written(false, 0), (HOSTILE.to_owned(), String::new()));
        assert_eq!(written(true, 0), ("a\\x1b[2J\nb\n".to_owned(), String::new()));
    }

    #[test]
    fn a_dropped_head_is_told_beside_the_output() {
        let (out, err) = written(false, 4_096);
        assert_eq!(out, HOSTILE);
        assert_eq!(err, "the first 4096 bytes were not kept (output_limit)\n");
    }

    #[test]
    fn the_last_attempt_is_shown_unless_one_is_named() {
        let record = fixture::failed();
        let attempt = |wanted| choose(&record, wanted).map(|run| run.map(|run| run.attempt));
        assert_eq!(attempt(None).unwrap(), Some(3));
        assert_eq!(attempt(Some(1)).unwrap(), Some(1));
        assert_eq!(
            attempt(Some(9)).unwrap_err().to_string(),
            "billing@2026-11-21T12Z has no attempt 9; its attempts are: 1, 2, 3"
        );
        assert_eq!(choose(&fixture::untouched(), None).unwrap(), None);
    }
}
