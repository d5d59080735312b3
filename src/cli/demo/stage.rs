//! The demo while it is played: follows the journals and the store, shows both, and kills the node that holds a lease.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::cli::console::{Console, Live};
use crate::cli::demo::cluster::Cluster;
use crate::cli::demo::script::{EXPORT, SPARED, Script};
use crate::cli::failure::Failure;
use crate::cli::format::{self, Grid};
use crate::clock::{Clock, later};
use crate::drive::timers;
use crate::event::Event;
use crate::observe::journal::Line;
use crate::slot::{Mark, Outcome, Slot, SlotRecord, Verdict};
use crate::store::Store;

/// From one look to the next.
const LOOK_EVERY: Duration = Duration::from_millis(150);
/// So long the victim is seen to run.
const SUSPENSE: Duration = Duration::from_millis(1_200);
/// A machine on which it takes longer than this has no time for it.
const LONGEST: Duration = Duration::from_secs(45);
/// For the nodes to leave.
const FAREWELL: Duration = Duration::from_secs(6);
/// Attempts of the demo's jobs.
const MAX_ATTEMPTS: u32 = 3;

/// Everything that is followed.
pub(super) struct Stage<'a> {
    script: Script,
    cluster: &'a mut Cluster,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    live: Live,
    /// Lines of each journal that were read.
    read: Vec<usize>,
    /// Who runs the job that is to be struck, in which slot, and since when.
    victim: Option<Kill>,
    kill: Option<Kill>,
    /// The addresses of the dashboard are still to be told.
    addresses: bool,
    /// What was to be seen is over, and the nodes go on.
    lingers: bool,
}

impl<'a> Stage<'a> {
    pub(super) fn new(script: Script, cluster: &'a mut Cluster, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        let (read, addresses) = (vec![0; cluster.nodes.len()], cluster.serves());
        let live = Live::default();
        Self { script, cluster, store, clock, live, read, victim: None, kill: None, addresses, lingers: false }
    }

    /// Until every second slot is done.
    pub(super) async fn play(&mut self, console: &mut Console) -> Result<(), Failure> {
        self.introduce(console)?;
        let end = self.clock.now().mono + LONGEST;
        while self.clock.now().mono < end {
            let records = self.step(console).await?;
            self.strike(&records, console)?;
            if self.kill.is_some() && is_over(&records, self.clock.now().wall) {
                break;
            }
            self.wait(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Whether a node was killed.
    pub(super) const fn has_struck(&self) -> bool {
        self.kill.is_some()
    }

    /// Goes on until it is dropped, or a node ends.
    pub(super) async fn linger(&mut self, console: &mut Console) -> Result<(), Failure> {
        self.lingers = true;
        loop {
            self.step(console).await?;
            self.wait(LOOK_EVERY).await;
        }
    }

    /// Lets the nodes leave; answers who was killed.
    pub(super) async fn finish(mut self, console: &mut Console) -> Result<Kill, Failure> {
        self.dismiss(console).await?;
        let late =
            || format!("no node was killed and replaced within {}s: this machine is too busy", LONGEST.as_secs());
        self.kill.ok_or_else(|| Failure::Internal(late()))
    }

    async fn step(&mut self, console: &mut Console) -> Result<Vec<SlotRecord>, Failure> {
        if let Some(addresses) = self.addresses.then(|| self.cluster.addresses()).flatten() {
            self.addresses = false;
            let spared = |node: &str| if node == SPARED { " (never killed)" } else { "" };
            let line =
                |(node, address): &(&str, String)| format!("dashboard of node {node}{}: {address}", spared(node));
            let lines: Vec<String> = addresses.iter().map(line).chain([String::new()]).collect();
            self.tell(&lines, console)?;
        }
        let records = self.look(console).await?;
        match self.cluster.lost() {
            Some(told) => Err(Failure::Internal(told)),
            None => Ok(records),
        }
    }

    fn introduce(&mut self, console: &mut Console) -> Result<(), Failure> {
        let nodes = self.cluster.nodes.iter().map(|node| format!("{} (process {})", node.name, node.pid()));
        let nodes: Vec<String> = nodes.collect();
        let head = [
            format!("three nodes share one store and three jobs: {}", nodes.join(", ")),
            "push succeeds, flaky fails first, and the node that runs export will be killed".to_owned(),
            String::new(),
        ];
        self.tell(&head, console)
    }

    /// Shows what is new, and what stands in the store.
    async fn look(&mut self, console: &mut Console) -> Result<Vec<SlotRecord>, Failure> {
        self.tell_news(console)?;
        // Once the node is killed, what becomes of that slot is what is waited for.
        let awaited = self.kill.as_ref().filter(|_| !self.lingers).map(|kill| kill.slot.start());
        let slots = self.script.slots(awaited.unwrap_or(self.clock.now().wall));
        let records = match self.store.inspect(&slots).await {
            Ok((_, records)) => records,
            // Four processes share the file: one that has to wait too long looks again.
            Err(error) if error.is_transient() => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        if console.lively {
            let picture = self.picture(&records, console);
            self.live.draw(&picture, console)?;
        }
        Ok(records)
    }

    /// Kills the node that has run the job for a while in its second slot.
    fn strike(&mut self, records: &[SlotRecord], console: &mut Console) -> Result<(), Failure> {
        let now = self.clock.now().wall;
        let Some(victim) = &self.victim else { return Ok(()) };
        let holds = |record: &SlotRecord| {
            let held = matches!(&record.mark, Mark::Leased { by, .. } if by.node.as_str() == victim.node);
            held && record.slot == victim.slot
        };
        if self.kill.is_some() || now < later(victim.at, SUSPENSE) || !records.iter().any(holds) {
            return Ok(());
        }
        let kill = Kill { at: now, ..victim.clone() };
        self.cluster.kill(&kill.node)?;
        let line = entry(now, &kill.node, &kill.slot.to_string(), "killed (-9), its lease stands");
        self.kill = Some(kill);
        self.tell(&[line], console)
    }

    /// Lets the other nodes leave, and tells what they say.
    async fn dismiss(&mut self, console: &mut Console) -> Result<(), Failure> {
        self.cluster.dismiss();
        let end = self.clock.now().mono + FAREWELL;
        while !self.cluster.is_gone() && self.clock.now().mono < end {
            self.wait(LOOK_EVERY).await;
        }
        self.tell_news(console)
    }

    /// Tells what the nodes wrote since the last look, in the order in which it happened.
    fn tell_news(&mut self, console: &mut Console) -> Result<(), Failure> {
        let mut news = Vec::new();
        for (node, read) in self.cluster.nodes.iter().zip(&mut self.read) {
            news.extend(lines_after(&node.journal, read));
        }
        news.sort_by_key(|line| line.at);
        for line in &news {
            self.note_victim(line);
        }
        let told: Vec<String> = news.iter().filter_map(|line| story(line, self.kill.as_ref())).collect();
        self.tell(&told, console)
    }

    fn note_victim(&mut self, line: &Line) {
        let Some(slot) = line.slot() else { return };
        let is_export = slot.job().as_str() == EXPORT && slot.start() >= self.script.second;
        if is_export && matches!(line.event, Event::RunStarted { .. }) {
            self.victim = Some(Kill { at: line.at, node: line.node.to_string(), slot });
        }
    }

    fn tell(&mut self, lines: &[String], console: &mut Console) -> Result<(), Failure> {
        if console.lively {
            return self.live.leave(lines, console);
        }
        lines.iter().try_for_each(|line| console.print(&format!("{line}\n")))?;
        console.flush()
    }

    /// The leases and counters as they stand.
    fn picture(&self, records: &[SlotRecord], console: &Console) -> Vec<String> {
        let mut grid = Grid::new(console, &["JOB", "SLOT", "STATE", "ATTEMPTS", "HOLDER", "LEASE"]);
        let now = self.clock.now().wall;
        for record in records {
            let lease = match &record.mark {
                Mark::Leased { by, remaining, .. } => Some((by.node.as_str(), remaining.as_secs_f64())),
                _ => None,
            };
            grid.row(vec![
                format::text(record.slot.job().as_str()),
                format::text(record.slot.key().to_string()),
                format::state(console, record.state(now, MAX_ATTEMPTS)),
                format::text(format!("{}/{MAX_ATTEMPTS}", record.used())),
                format::maybe(lease.map(|(node, _)| node)),
                format::maybe(lease.map(|(_, left)| format!("{left:.1}s"))),
            ]);
        }
        let nodes = self.cluster.nodes.iter().map(|node| match node.ended {
            true => format!("{} gone", node.name),
            false => format!("{} process {}", node.name, node.pid()),
        });
        let nodes = format!("nodes: {}", nodes.collect::<Vec<_>>().join(", "));
        [String::new()].into_iter().chain(grid.lines()).chain([nodes]).collect()
    }

    async fn wait(&self, span: Duration) {
        timers::until(&*self.clock, Some(self.clock.now().mono + span)).await;
    }
}

/// The whole lines of a journal after those that were read. One that cannot be read is left to the checker.
fn lines_after(journal: &Path, read: &mut usize) -> Vec<Line> {
    let text = std::fs::read_to_string(journal).unwrap_or_default();
    let whole: Vec<&str> = text.split_inclusive('\n').filter(|line| line.ends_with('\n')).collect();
    let news = whole.iter().skip(*read).filter_map(|line| serde_json::from_str(line).ok()).collect();
    *read = whole.len();
    news
}

/// Whether nothing more happens in these slots: each is done, or over and told.
fn is_over(records: &[SlotRecord], now: DateTime<Utc>) -> bool {
    let settled = |record: &SlotRecord| {
        let told = record.verdict.is_some() && record.slot.end() <= now;
        told || matches!(record.mark, Mark::Done(_))
    };
    !records.is_empty() && records.iter().all(settled)
}

/// The node that was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kill {
    pub(super) at: DateTime<Utc>,
    pub(super) node: String,
    /// The slot that it held.
    pub(super) slot: Slot,
}

/// A line of the story; none for what is not worth one.
fn story(line: &Line, kill: Option<&Kill>) -> Option<String> {
    let slot = line.slot();
    let what = words(&line.event, kill.filter(|kill| slot.as_ref() == Some(&kill.slot)))?;
    Some(entry(line.at, line.node.as_str(), &slot.map(|slot| slot.to_string()).unwrap_or_default(), &what))
}

/// One line: when, who, which slot, what.
fn entry(at: DateTime<Utc>, who: &str, slot: &str, what: &str) -> String {
    format!("{}  {who:<4}  {slot:<27}  {what}", at.format("%H:%M:%S%.3f"))
}

/// What happened; `kill` is that of the holder of this very slot.
fn words(event: &Event, kill: Option<&Kill>) -> Option<String> {
    Some(match event {
        Event::Started { .. } => "is up".to_owned(),
        Event::Granted { attempt: 1, .. } => "holds the lease, attempt 1".to_owned(),
        Event::Granted { attempt, .. } => match kill {
            Some(Kill { node, .. }) => format!("takes over from {node}, attempt {attempt}"),
            None => format!("tries again, attempt {attempt}"),
        },
        Event::RunEnded { outcome: Outcome::Success, .. } => return None,
        Event::RunEnded { outcome: Outcome::Failure, exit_code: Some(code), .. } => format!("fails with exit {code}"),
        Event::RunEnded { outcome, .. } => format!("ends: {}", outcome.as_str().replace('_', " ")),
        Event::Settled { outcome: Outcome::Success, .. } => "done".to_owned(),
        Event::Settled { outcome: Outcome::GivenBack, .. } => "gives it back".to_owned(),
        Event::LeaseLost { .. } => "lost its lease".to_owned(),
        Event::AttemptsUsedUp { .. } => "no attempt is left".to_owned(),
        Event::Closed { verdict } if *verdict != Verdict::Done => format!("is over: {}", verdict.as_str()),
        Event::StoreLost { .. } => "cannot reach the store".to_owned(),
        Event::Draining { .. } => "is leaving".to_owned(),
        Event::Fault { error } => format!("fault: {error}"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::admin::fixture;
    use crate::slot::VerdictRecord;

    #[test]
    fn a_half_written_line_is_read_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let line = r#"{"at":"2026-11-21T14:00:00.000Z","node":"a","instance":"i","event":"stopped"}"#;
        let mut read = 0;
        assert_eq!(lines_after(&path, &mut read).len(), 0, "it is not there yet");
        std::fs::write(&path, format!("{line}\n{}", &line[..20])).unwrap();
        assert_eq!((lines_after(&path, &mut read).len(), read), (1, 1));
        std::fs::write(&path, format!("{line}\n{line}\n")).unwrap();
        assert_eq!((lines_after(&path, &mut read).len(), read), (1, 2));
        assert_eq!(lines_after(&path, &mut read).len(), 0);
    }

    #[test]
    fn it_is_over_when_every_slot_is_done_or_told() {
        let (done, running, now) = (fixture::done(), fixture::running(), fixture::at(fixture::NOON));
        assert!(is_over(&[done.clone(), done.clone()], now));
        assert!(!is_over(&[done.clone(), running], now));
        assert!(!is_over(&[], now), "a look that failed says nothing");
        let verdict = VerdictRecord { verdict: Verdict::Missed, by: fixture::node("a"), at: now, attempt: 0 };
        let missed = SlotRecord { verdict: Some(verdict), ..fixture::untouched() };
        assert!(is_over(&[done, missed.clone()], missed.slot.end()));
    }

    fn line(event: &str) -> Line {
        let head = r#"{"at":"2026-11-21T14:00:12.100Z","node":"a","instance":"i","job":"export""#;
        let slot = r#""slot":"2026-11-21T14:00:12Z","slot_end":"2026-11-21T14:00:24Z""#;
        serde_json::from_str(&format!("{head},{slot},{event}}}")).unwrap()
    }

    fn granted(attempt: u32) -> Line {
        line(&format!(
            r#""event":"granted","attempt":{attempt},"used":{attempt},"max_attempts":3,"granted_at":"2026-11-21T14:00:12.000Z",
               "token":"0","trigger":"retry","lease_ttl_s":2.0,"retry_delay_s":1.0,"on_lost":"continue""#
        ))
    }

    #[test]
    fn a_takeover_is_told_from_a_second_try() {
        let kill = |job: &str| {
            let slot = Slot::parse(job, "2026-11-21T14:00:12Z", "2026-11-21T14:00:24Z").unwrap();
            Kill { at: DateTime::UNIX_EPOCH, node: "b".to_owned(), slot }
        };
        let told = |kill: Option<&Kill>| story(&granted(2), kill).unwrap();
        assert_eq!(told(None), "14:00:12.100  a     export@2026-11-21T14:00:12Z  tries again, attempt 2");
        assert!(told(Some(&kill("export"))).ends_with("takes over from b, attempt 2"));
        assert!(told(Some(&kill("push"))).ends_with("tries again, attempt 2"), "another slot");
    }

    #[test]
    fn a_line_fits_80_columns() {
        let told = story(&granted(2), None).unwrap();
        assert!(told.len() <= 80, "{told}");
    }

    #[test]
    fn a_run_that_succeeded_is_told_once_when_it_is_recorded() {
        let ended = line(r#""event":"run_ended","attempt":1,"outcome":"success","exit_code":0,"duration_s":1.0"#);
        assert_eq!(story(&ended, None), None);
        let settled = line(r#""event":"settled","attempt":1,"outcome":"success""#);
        assert!(story(&settled, None).unwrap().ends_with("done"));
    }
}
