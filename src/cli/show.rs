//! `cronward show J@S`: all that is known of one slot.

use std::fmt::Write;

use chrono::{DateTime, Utc};

use crate::admin::command_line::starter;
use crate::admin::lookup::{self, SlotRef};
use crate::admin::words::{brief, ended_between, ending, harmless, harmless_lines, instant, missed_after};
use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::session;
use crate::cli::store_args::StoreArgs;
use crate::observe::view::{LatestView, SlotView};
use crate::slot::{JobLatest, Mark, OutputTail, RunRecord, SlotRecord, SlotState};
use crate::store::{self, JobEntry};

/// Lines of an attempt's output that are shown.
const OUTPUT_LINES: usize = 10;

/// Show one slot: its state, each attempt with the end of its output, its lease, and where the store keeps it
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward show billing@2026-11-21T14Z")]
pub(crate) struct ShowArgs {
    /// The slot: billing@2026-11-21T14Z, billing for the current slot, billing@-1 for the previous slot
    #[arg(value_name = "JOB[@SLOT]")]
    pub(crate) slot: SlotRef,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Shows the slot.
pub(crate) async fn show(args: &ShowArgs, console: &mut Console) -> Result<(), Failure> {
    let (session, address) = session::open_at(&args.store, console).await?;
    let (job, mut record) = lookup::find(&session, &args.slot).await?;
    let unreadable = session.read_outputs(&mut record).await?;
    unreadable.iter().for_each(|error| console.warn(harmless(&error.to_string())));
    let latest = session.store.latest(std::slice::from_ref(record.slot.job())).await?.pop().unwrap_or_default();
    if args.output.json {
        let view = SlotView::of(&record, session.now, job.entry.max_attempts);
        return console.json(&SlotView { latest: Some(LatestView::of(&latest)), ..view });
    }
    let location = session.store.location();
    let keys = store::where_kept(&address.url, location, &address.options.namespace, &record.slot);
    let now = session.now;
    let page = Page { record: &record, job: &job.entry, latest: &latest, now, keys, store: &args.store };
    console.print(&page.render())
}

/// What one page shows.
struct Page<'a> {
    record: &'a SlotRecord,
    job: &'a JobEntry,
    latest: &'a JobLatest,
    now: DateTime<Utc>,
    keys: Vec<(String, store::KeptPart)>,
    store: &'a StoreArgs,
}

impl Page<'_> {
    /// The page. Writing to a string cannot fail.
    fn render(&self) -> String {
        let mut page = String::new();
        self.head(&mut page);
        for run in &self.record.runs {
            self.run(&mut page, run);
        }
        self.audit(&mut page);
        self.kept_at(&mut page);
        page
    }

    fn head(&self, page: &mut String) {
        let Self { record, job, now, .. } = self;
        let (slot, max) = (&record.slot, job.max_attempts);
        let _ = match (record.state(*now, max), record.used()) {
            (SlotState::Missed, used @ 1..) => writeln!(page, "{slot}  {}", missed_after(used, max)),
            (state, _) => writeln!(page, "{slot}  {}", state.as_str()),
        };
        field(page, "slot", &format!("{} to {}", instant(slot.start()), instant(slot.end())));
        let (zone, period) = (&job.timezone, &job.period);
        match starter(job.origin) {
            None => field(page, "schedule", &format!("{} ({zone}), one slot per {period}", job.schedule)),
            Some(starts) => field(page, "schedule", &format!("{starts}; one slot per {period} ({zone})")),
        }
        let forgiven = match record.forgiven {
            0 => String::new(),
            forgiven => format!(", and {forgiven} that do not count"),
        };
        field(page, "attempts", &format!("{} of {max}{forgiven}", record.used()));
        field(page, mark_name(&record.mark), &mark(&record.mark));
        if let Some(told) = &record.verdict {
            let text = format!("{}, recorded by {} at {}", told.verdict.as_str(), told.by, instant(told.at));
            field(page, "verdict", &text);
        }
        if let Some(failing) = &self.latest.failing {
            let done = self.latest.success.map(|done| format!("; the newest that is done is {}", done.slot));
            // The verdict of this one may come later.
            let state = record.state(*now, max);
            let newer = matches!(state, SlotState::Failed | SlotState::Missed) && failing.last < slot.key();
            let (count, since) = (failing.slots + u32::from(newer), failing.since);
            let slots = if count == 1 { "1 slot of the job".to_owned() } else { format!("{count} slots of the job") };
            field(page, "failing", &format!("{slots} since {since}{}", done.unwrap_or_default()));
        }
    }

    fn run(&self, page: &mut String, run: &RunRecord) {
        let _ = writeln!(page, "\nattempt {}  {}", run.attempt, ending(self.record, run));
        field(page, "node", run.node.as_str());
        field(page, "trigger", run.trigger.as_str());
        match run.started_at {
            Some(started) => field(page, "started", &instant(started)),
            None => field(page, "claimed", &instant(run.claimed_at)),
        }
        if let Some(between) = ended_between(run) {
            field(page, "ended", &between);
            run.cpu_ms.iter().for_each(|millis| field(page, "cpu time", &format!("{millis} ms")));
        } else if let Some(ended) = run.ended_at {
            let lasted = run.duration_ms.map(|millis| format!(" after {millis} ms")).unwrap_or_default();
            field(page, "ended", &format!("{}{lasted}", instant(ended)));
        }
        field(page, "fence", &self.record.slot.fence(run.attempt).to_string());
        if let Some(message) = &run.message {
            field(page, "message", message);
        }
        match &run.output {
            Some(output) if output.is_lost() => field(page, "output", &output.lost()),
            Some(output) if !output.text.is_empty() => self.output(page, run, output),
            _ => {}
        }
    }

    /// The last lines of an attempt's output, and how to see the rest.
    fn output(&self, page: &mut String, run: &RunRecord, output: &OutputTail) {
        let lines: Vec<_> = harmless_lines(&output.text).collect();
        let hidden = lines.len().saturating_sub(OUTPUT_LINES);
        let what = if hidden == 0 && output.dropped_bytes == 0 {
            "all of it".to_owned()
        } else {
            let all = self.store.command(format_args!("logs {} --attempt {}", self.record.slot, run.attempt));
            format!("the last {} lines; more: {all}", lines.len() - hidden)
        };
        field(page, "output", &what);
        for line in lines.iter().skip(hidden) {
            let _ = writeln!(page, "    {}", format!("| {line}").trim_end());
        }
    }

    fn audit(&self, page: &mut String) {
        if !self.record.audit.is_empty() {
            page.push_str("\noperators\n");
        }
        for audit in &self.record.audit {
            let why = if audit.why.is_empty() { String::new() } else { format!(": {}", audit.why) };
            let text = format!("{} by {} on {}{why}", audit.verb, audit.who, audit.host);
            let _ = writeln!(page, "  {}  {}", instant(audit.at), harmless(&text));
        }
    }

    fn kept_at(&self, page: &mut String) {
        if !self.keys.is_empty() {
            page.push_str("\nkept at\n");
        }
        for (name, part) in &self.keys {
            let _ = writeln!(page, "  {name}  ({})", part.as_str());
        }
    }
}

/// One line: a name and a harmless value.
fn field(page: &mut String, name: &str, value: &str) {
    let _ = writeln!(page, "  {name:<9} {}", harmless(value));
}

const fn mark_name(mark: &Mark) -> &'static str {
    match mark {
        Mark::Free | Mark::Leased { .. } => "lease",
        Mark::Backoff { .. } => "wait",
        Mark::Done(_) => "done",
    }
}

fn mark(mark: &Mark) -> String {
    match mark {
        Mark::Free => "none".to_owned(),
        Mark::Leased { by, token, remaining } => {
            format!(
                "{}, attempt {}, for another {} unless renewed, token {token}",
                by.node,
                by.attempt,
                brief(*remaining)
            )
        }
        Mark::Backoff { by, remaining } => {
            format!("another {} after attempt {} failed on {}", brief(*remaining), by.attempt, by.node)
        }
        Mark::Done(done) if done.by.attempt == 0 => format!("marked by {} at {}", done.by.node, instant(done.at)),
        Mark::Done(done) => format!("attempt {} on {} at {}", done.by.attempt, done.by.node, instant(done.at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::fixture::{self, NOON};

    fn page(record: &SlotRecord) -> String {
        let keys = vec![("cronward:default:{billing@2026-11-21T12Z}".to_owned(), store::KeptPart::Mark)];
        let (job, latest, store) = (fixture::entry("billing"), JobLatest::default(), StoreArgs::default());
        Page { record, job: &job, latest: &latest, now: fixture::at(NOON), keys, store: &store }.render()
    }

    #[test]
    fn a_slot_that_was_missed_after_attempts_says_at_once_that_they_failed() {
        let (job, latest, store) = (fixture::entry("billing"), JobLatest::default(), StoreArgs::default());
        let now = fixture::at("2026-11-21T13:10:00Z");
        let first = |record: &SlotRecord| {
            let page = Page { record, job: &job, latest: &latest, now, keys: Vec::new(), store: &store };
            page.render().lines().next().unwrap_or_default().to_owned()
        };
        assert_eq!(
            first(&fixture::waiting()),
            "billing@2026-11-21T12Z  missed: attempt 1 of 3 did not succeed, no retry before the slot ended"
        );
        assert_eq!(first(&fixture::untouched()), "billing@2026-11-21T12Z  missed");
    }

    #[test]
    fn a_slot_of_a_job_that_is_failing_says_so() {
        let key = |text: &str| text.parse::<crate::slot::SlotKey>().unwrap();
        let mut latest = JobLatest::default();
        latest.done(key("2026-11-21T09Z"), fixture::at(NOON));
        latest.closed(key("2026-11-21T10Z"), crate::slot::Verdict::Failed);
        let shown = |latest: &JobLatest| {
            let (job, store, record) = (fixture::entry("billing"), StoreArgs::default(), fixture::untouched());
            let now = fixture::at(NOON);
            Page { record: &record, job: &job, latest, now, keys: Vec::new(), store: &store }.render()
        };
        let line = "\n  failing   1 slot of the job since 2026-11-21T10Z; the newest that is done is 2026-11-21T09Z\n";
        assert!(shown(&latest).contains(line), "{}", shown(&latest));
        latest.closed(key("2026-11-21T11Z"), crate::slot::Verdict::Missed);
        latest.success = None;
        assert!(shown(&latest).contains("\n  failing   2 slots of the job since 2026-11-21T10Z\n"));
    }

    #[test]
    fn a_running_slot_is_shown_with_its_lease_and_its_attempts() {
        assert_eq!(
            page(&fixture::running()),
            "\
billing@2026-11-21T12Z  running
  slot      2026-11-21T12:00:00Z to 2026-11-21T13:00:00Z
  schedule  0 * * * * (UTC), one slot per hour
  attempts  2 of 3
  lease     b, attempt 2, for another 41s unless renewed, token 00000000000000000000000000000002

attempt 1  exit 1
  node      a
  trigger   schedule
  started   2026-11-21T12:00:00.020Z
  ended     2026-11-21T12:00:01.520Z after 1500 ms
  fence     1795262400001
  output    all of it
    | attempt 1
    | no \\x1b[31mroute

attempt 2  running
  node      b
  trigger   retry
  claimed   2026-11-21T12:01:00Z
  fence     1795262400002

kept at
  cronward:default:{billing@2026-11-21T12Z}  (lease, wait or done marker)
"
        );
    }

    #[test]
    fn a_failed_slot_is_shown_with_the_end_of_a_long_output_and_who_touched_it() {
        let shown = page(&fixture::failed());
        let from_third = shown.split("\n\n").skip(3).collect::<Vec<_>>().join("\n\n");
        assert!(shown.contains("\nattempt 2  crashed\n"), "{shown}");
        assert_eq!(
            from_third,
            "\
attempt 3  timeout
  node      c
  trigger   retry
  started   2026-11-21T12:02:00.020Z
  ended     2026-11-21T12:02:01.520Z after 1500 ms
  fence     1795262400003
  message   stopped after 30m
  output    the last 10 lines; more: cronward logs billing@2026-11-21T12Z --attempt 3
    | line 6
    | line 7
    | line 8
    | line 9
    | line 10
    | line 11
    | line 12
    | line 13
    | line 14
    | line 15

operators
  2026-11-21T12:02:30Z  unlock by alice on ops-1: node b is\\ngone

kept at
  cronward:default:{billing@2026-11-21T12Z}  (lease, wait or done marker)
"
        );
    }

    #[test]
    fn what_stands_at_the_key_is_told_in_words() {
        let line = |record: &SlotRecord| page(record).lines().nth(4).unwrap_or_default().to_owned();
        assert_eq!(line(&fixture::untouched()), "  lease     none");
        assert_eq!(line(&fixture::waiting()), "  wait      another 8s after attempt 1 failed on a");
        assert_eq!(line(&fixture::done()), "  done      attempt 1 on a at 2026-11-21T12:00:02Z");
        let forgiven = SlotRecord { attempts: 4, forgiven: 2, ..fixture::untouched() };
        assert!(page(&forgiven).contains("  attempts  2 of 3, and 2 that do not count\n"));
    }

    #[test]
    fn nothing_in_a_page_can_reach_the_terminal_as_a_control() {
        let mut record = fixture::failed();
        for run in &mut record.runs {
            run.message = Some("\x1b]0;x\x07\u{9b}2J\r".to_owned());
            run.output = Some(OutputTail { text: "\x1b[2J\u{202e}".to_owned(), dropped_bytes: 0, loss: None });
        }
        record.audit = vec![crate::slot::Audit { who: "\x1b[1m".to_owned(), ..fixture::audit("reset") }];
        assert!(page(&record).chars().all(|c| c == '\n' || !c.is_control()), "{}", page(&record));
    }
}
