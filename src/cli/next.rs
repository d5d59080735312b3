//! `cronward next`: the next scheduled times and their slots. No store is needed where a file says what the jobs are.

use chrono::{DateTime, Utc};

use crate::admin::command_line::starter;
use crate::admin::words::{instant, relative};
use crate::admin::{Catalog, KnownJob, ticks};
use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::format::{self, Grid};
use crate::cli::session::{self, block_on};
use crate::cli::store_args::StoreArgs;
use crate::cli::value_parsers;
use crate::clock::Clock;
use crate::job::{JobName, JobSpec, Program};
use crate::observe::view::TickView;
use crate::schedule::Schedule;
use crate::slot::Period;
use crate::zone::Zone;

/// List the next scheduled times and their slots; with --schedule those of a cron expression, without a file
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward next billing --count 5 --from 2027-03-27T12:00:00Z")]
pub(crate) struct NextArgs {
    /// Only this job
    #[arg(value_name = "JOB")]
    pub(crate) job: Option<JobName>,
    /// A cron expression: 5 fields, 6 with seconds first, or a word like @hourly. Each scheduled time is its own slot
    #[arg(long, value_name = "EXPR", conflicts_with_all = ["job", "config", "store", "namespace"])]
    pub(crate) schedule: Option<String>,
    /// The time zone of --schedule [default: UTC]
    #[arg(long, value_name = "ZONE", requires = "schedule", value_parser = value_parsers::zone)]
    pub(crate) timezone: Option<Zone>,
    /// How many scheduled times to list
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10, value_parser = value_parsers::number(1..=1000_u16))]
    pub(crate) count: u16,
    /// List the times after this one instead of after now
    #[arg(long, value_name = "TIME", value_parser = value_parsers::instant)]
    pub(crate) from: Option<DateTime<Utc>>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Lists ticks, the soonest first.
pub(crate) fn list(args: &NextArgs, clock: &dyn Clock, console: &mut Console) -> Result<(), Failure> {
    let now = clock.now().wall;
    let catalog = match &args.schedule {
        Some(expression) => expressed(expression, &args.timezone.clone().unwrap_or_default(), console)?,
        None => catalog(args, console)?,
    };
    let jobs = wanted(args, &catalog, console)?;
    let ticks = ticks::soonest(&jobs, args.from.unwrap_or(now), args.count.into());
    if args.output.json {
        return console.json(&ticks);
    }
    if ticks.is_empty() {
        console.note("no job has a scheduled time ahead");
    }
    print(&ticks, now, console)
}

/// An expression as a job, and in words on stderr with whatever may not be meant by it.
fn expressed(expression: &str, zone: &Zone, console: &mut Console) -> Result<Catalog, Failure> {
    let nameless = JobName::new("schedule").map_err(|error| Failure::Internal(error.to_string()))?;
    let spec = JobSpec {
        timezone: zone.clone(),
        period: Period::Tick,
        ..JobSpec::new(nameless, expression, Program::Direct(Vec::new()))
    };
    let schedule = Schedule::parse(expression, zone.clone()).map_err(|error| {
        let hint = error.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        Failure::Usage(format!("--schedule {:?}: {}{hint}; write it like '0 * * * *'", error.expression, error.message))
    })?;
    console.note(format_args!("{} Time zone {zone}.", schedule.describe()));
    for remark in schedule.remarks() {
        console.warn(format_args!("{} ({})", remark.message, remark.hint));
    }
    let mut catalog = Catalog::default();
    catalog.declare(&spec)?;
    Ok(catalog)
}

/// The file's jobs; the registry's where only a store is named.
fn catalog(args: &NextArgs, console: &mut Console) -> Result<Catalog, Failure> {
    match args.store.read_file(console)? {
        Some(file) => Ok(Catalog::unite(Some(&file), Vec::new())?),
        None => block_on(async { Ok(session::open(&args.store, console).await?.catalog) }),
    }
}

/// The job that is named; otherwise all that are planned.
fn wanted<'a>(args: &NextArgs, catalog: &'a Catalog, console: &mut Console) -> Result<Vec<&'a KnownJob>, Failure> {
    let Some(name) = &args.job else { return Ok(catalog.iter().filter(|job| job.entry.enabled).collect()) };
    let job = catalog.find(name)?;
    if !job.entry.enabled {
        let why =
            starter(job.entry.origin).map_or_else(|| "is disabled".to_owned(), |starts| format!("runs when {starts}"));
        console.note(format_args!("{name} {why}: no node plans these times"));
    }
    Ok(vec![job])
}

/// The table.
fn print(ticks: &[TickView], now: DateTime<Utc>, console: &mut Console) -> Result<(), Failure> {
    let noted = ticks.iter().any(|view| !view.notes.is_empty());
    let columns = ["TIME", "LEFT", "JOB", "SLOT", "LOCAL TIME", "NOTE"];
    let shown = if noted { columns.len() } else { columns.len() - 1 };
    let mut grid = Grid::new(console, columns.get(..shown).unwrap_or(&columns));
    for view in ticks {
        let cells = [&instant(view.tick), &relative(now, view.tick), view.job.as_str(), &view.slot, &view.local];
        let note = noted.then(|| view.notes.join("; "));
        grid.row(cells.into_iter().chain(note.as_deref()).map(format::text).collect());
    }
    grid.print(console)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Timetable;
    use crate::store::JobEntry;

    fn job(name: &str, schedule: &str, zone: &str) -> KnownJob {
        let spec = JobSpec {
            timezone: zone.parse().unwrap(),
            ..JobSpec::new(JobName::new(name).unwrap(), schedule, Program::Direct(vec!["/bin/true".to_owned()]))
        };
        let entry = JobEntry { timezone: zone.to_owned(), ..crate::admin::fixture::entry(name) };
        KnownJob {
            entry,
            spec: None,
            timetable: Timetable::of(&spec).unwrap(),
            known_since: None,
            here: false,
            orphaned: false,
            unmatched: false,
            unattended: false,
        }
    }

    fn listed(jobs: &[&KnownJob], from: &str, count: usize) -> String {
        let (mut console, out, _) = Console::captured(false);
        let from = from.parse().unwrap();
        print(&ticks::soonest(jobs, from, count), from, &mut console).unwrap();
        out.text()
    }

    #[test]
    fn the_ticks_of_all_jobs_come_in_order_and_no_more_than_asked_for() {
        let (hourly, daily) = (job("hourly", "0 * * * *", "UTC"), job("daily", "0 9 * * *", "Asia/Tokyo"));
        assert_eq!(
            listed(&[&daily, &hourly], "2026-11-20T23:00:00Z", 3),
            "TIME                  LEFT    JOB     SLOT            LOCAL TIME\n\
             2026-11-21T00:00:00Z  in 60m  daily   2026-11-21T00Z  2026-11-21T09:00:00+09:00\n\
             2026-11-21T00:00:00Z  in 60m  hourly  2026-11-21T00Z  2026-11-21T00:00:00Z\n\
             2026-11-21T01:00:00Z  in 2h   hourly  2026-11-21T01Z  2026-11-21T01:00:00Z\n"
        );
    }

    #[test]
    fn a_time_that_the_clock_jumps_over_is_told_at_its_tick() {
        let nightly = job("nightly", "30 2 * * *", "Europe/Berlin");
        let listed = listed(&[&nightly], "2026-03-28T12:00:00Z", 2);
        let noted: Vec<&str> = listed.lines().filter(|line| line.contains("does not exist")).collect();
        assert_eq!(noted.len(), 1, "{listed}");
        assert!(noted[0].starts_with("2026-03-29T01:00:00Z"), "{listed}");
    }

    #[test]
    fn ticks_are_in_utc_and_on_the_clocks_of_the_job() {
        let view = &ticks::soonest(
            &[&job("nightly", "30 2 * * *", "Europe/Berlin")],
            "2026-07-01T12:00:00Z".parse().unwrap(),
            1,
        )[0];
        assert_eq!(
            (view.tick.to_rfc3339(), &*view.local),
            ("2026-07-02T00:30:00+00:00".to_owned(), "2026-07-02T02:30:00+02:00")
        );
    }
}
