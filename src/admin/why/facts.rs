//! All that is known of a slot; and the store's record and the nodes' decision log in one order. What both contain is shown once, as the
//! record has it: its times are the store's. Pure.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::admin::command_line::CommandLine;
use crate::admin::why::blocker::Blocker;
use crate::admin::why::english::holder;
use crate::admin::why::queued::Queued;
use crate::admin::words::{ending, ending_with_cause, zone_name};
use crate::job::NodeName;
use crate::observe::view::DecisionView;
use crate::observe::view::NoStart;
use crate::resource::DeadlockStep;
use crate::slot::{Audit, Decision, Note, NotePage, Overlap, RunRecord, SlotRecord};
use crate::store::{JobEntry, Pause};
use crate::zone::Zone;

/// All that is known of a slot and of those who might have run it.
pub(crate) struct Facts {
    pub(crate) record: SlotRecord,
    /// In the order in which they were begun.
    pub(crate) pages: Vec<NotePage>,
    /// Where the attempt that has the lease stands in the queues of its locks, by the store.
    pub(crate) queued: Queued,
    /// A ring of waits that the attempt is in, each request for the next; empty where it is in none.
    pub(crate) ring: Vec<DeadlockStep>,
    /// An older slot of the job that runs, where a node was refused this one for it.
    pub(crate) blocker: Option<Blocker>,
    /// Why what is not here cannot be read: the store holds what cronward did not write.
    pub(crate) unreadable: Vec<String>,
    /// The job's last pause.
    pub(crate) pause: Option<Pause>,
    pub(crate) job: JobEntry,
    /// Whether a file that was read has the job's command.
    pub(crate) has_command: bool,
    /// What was typed to get here: told commands go to the same store.
    pub(crate) store: CommandLine,
    /// When the registry first heard of the job; none when it has not.
    pub(crate) known_since: Option<DateTime<Utc>>,
    /// The slot's first tick since the cluster has known the job, or else its first; none where it has none.
    pub(crate) tick: Option<DateTime<Utc>>,
    /// When the cluster first knew the job, where all ticks of the slot lie before.
    pub(crate) not_owed: Option<DateTime<Utc>>,
    /// Nobody was to run it: nodes are alive, and none had the job in its file any more.
    pub(crate) orphaned: bool,
    /// Why no node starts it by itself, though it lasts.
    pub(crate) no_start: Option<NoStart>,
    /// Nodes that are alive.
    pub(crate) alive: Vec<NodeName>,
    /// Of a slot in which no node was alive from its tick on: the last heartbeat before, and when the next node started.
    pub(crate) silence: Option<(DateTime<Utc>, Option<DateTime<Utc>>)>,
    /// The store's clock.
    pub(crate) now: DateTime<Utc>,
    /// How long records are kept.
    pub(crate) retention: Duration,
    /// In which zone instants are told, with its name beside each; none in UTC without it, as commands tell them.
    pub(crate) zone: Option<Zone>,
}

impl Facts {
    /// An instant as people say it; with its date where that is not the day of the slot's start, which commands name beside it, or, on a
    /// page, today.
    pub(crate) fn at(&self, at: DateTime<Utc>) -> String {
        let zone = self.zone.clone().unwrap_or_default();
        let day = if self.zone.is_some() { self.now } else { self.record.slot.start() };
        let (local, day) = (zone.local(at), zone.local(day).date_naive());
        let form = if local.date_naive() == day { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
        let name = self.zone.as_ref().map(|zone| format!(" {}", zone_name(zone))).unwrap_or_default();
        format!("{}{name}", local.format(form))
    }
}

/// Everything that was decided, oldest first.
pub(crate) fn timeline(facts: &Facts) -> Vec<DecisionView> {
    let record = &facts.record;
    let mut entries: Vec<DecisionView> = record.runs.iter().flat_map(|run| of_run(facts, run)).collect();
    entries.extend(record.audit.iter().map(|audit| {
        let why = if audit.why.is_empty() { String::new() } else { format!(": {}", audit.why) };
        single(audit.at, None, "operator", format!("{} by {} on {}{why}", audit.verb, audit.who, audit.host))
    }));
    entries.extend(of_pause(facts));
    entries.extend(record.verdict.as_ref().map(|told| {
        single(told.at, Some(&told.by), "verdict", format!("recorded the verdict {}", told.verdict.as_str()))
    }));
    entries.extend(of_config(&facts.pages));
    for page in &facts.pages {
        entries.extend(
            page.notes.iter().filter(|note| !is_recorded(record, page, note)).map(|note| of_note(facts, page, note)),
        );
    }
    // Clocks have milliseconds, and much happens in one.
    entries.sort_by_key(|entry| (entry.at, cause(entry)));
    entries
}

/// The order of what happened at one instant: first what makes nodes look, then each attempt from its claim to its end, then
/// what others were answered, and last what comes of it all.
fn cause(entry: &DecisionView) -> (u8, u32, u8) {
    let step = match entry.what {
        "config_differs" | "operator" | "ticked" | "asked" | "not_selected" | "early" => return (0, 0, 0),
        "claimed" => 0,
        "started" => 1,
        "lock_waiting" | "lock_held" | "lock_left" => 1,
        "lease_in_doubt" | "lease_lost" | "lease_restored" | "lock_lost" => 2,
        "ended" => 3,
        "overtaken" | "unsettled" => return (3, 0, 0),
        "verdict" => return (4, 0, 0),
        _ => return (2, 0, 0),
    };
    (1, entry.attempt.unwrap_or(u32::MAX), step)
}

fn single(at: DateTime<Utc>, node: Option<&NodeName>, what: &'static str, text: String) -> DecisionView {
    DecisionView { at, until: None, times: 1, node: node.map(ToString::to_string), attempt: None, what, text }
}

fn of_run(facts: &Facts, run: &RunRecord) -> Vec<DecisionView> {
    let record = &facts.record;
    let ended = ending(record, run);
    let unended = run.ended_at.is_none() && ended != "running";
    let lost = if unended { format!("; {ended}") } else { String::new() };
    let claimed = format!("claimed attempt {} ({}){lost}", run.attempt, run.trigger.as_str());
    let claimed = match run.attempt {
        0 => "started without a guard: the store was unreachable".to_owned(),
        _ => claimed,
    };
    let of = |at, what, text| DecisionView { attempt: Some(run.attempt), ..single(at, Some(&run.node), what, text) };
    let mut entries = vec![of(run.claimed_at, "claimed", claimed)];
    let lost = run.lost_output().map(|output| format!("; output {}", output.lost())).unwrap_or_default();
    let cause = ending_with_cause(record, run);
    let between = run.ended_between().map(|(after, by)| {
        let cpu = run.cpu_ms.map_or_else(String::new, |millis| format!("; it used {millis} ms of processor time"));
        format!(" between {} and {} (this node stood still{cpu})", facts.at(after), facts.at(by))
    });
    let between = between.unwrap_or_default();
    let end = |at| of(at, "ended", format!("attempt {} ended{between}: {cause}{lost}", run.attempt));
    entries.extend(run.ended_at.map(end));
    entries
}

/// A pause that touched the slot.
fn of_pause(facts: &Facts) -> Option<DecisionView> {
    let slot = &facts.record.slot;
    let pause = facts.pause.as_ref().filter(|pause| pause.touches(slot.start(), slot.end()))?;
    let by = |audit: &Audit| format!("by {} on {}", audit.who, audit.host);
    let what = match (&pause.ended, pause.until) {
        (Some(ended), _) => {
            format!("paused the job, {}; resumed at {}, {}", by(&pause.audit), facts.at(ended.at), by(ended))
        }
        (None, Some(until)) => format!("paused the job until {}, {}", facts.at(until), by(&pause.audit)),
        (None, None) => format!("paused the job until resumed, {}", by(&pause.audit)),
    };
    Some(single(pause.since, None, "operator", what))
}

/// Nodes that had another definition of the job than most.
fn of_config(pages: &[NotePage]) -> Vec<DecisionView> {
    let hashes: Vec<&String> = pages.iter().filter_map(|page| page.job_hash.as_ref()).collect();
    let count = |hash: &String| hashes.iter().filter(|other| **other == hash).count();
    // Of as many on each side, those who began first are right.
    let most = hashes.iter().map(|hash| count(hash)).max().unwrap_or(0);
    let Some(usual) = hashes.iter().find(|hash| count(hash) == most) else { return Vec::new() };
    let by = pages.iter().find(|page| page.job_hash.as_ref() == Some(*usual)).map(|page| &page.node);
    // A node that had the usual one, too, has read its file anew, or was started with another command line.
    let had_usual =
        |node: &NodeName| pages.iter().any(|page| page.node == *node && page.job_hash.as_ref() == Some(*usual));
    let differs = |page: &&NotePage| page.job_hash.is_some() && !had_usual(&page.node);
    let told = |page: &NotePage| {
        let text = format!("has a different definition of the job than {}", by.map_or("the others", NodeName::as_str));
        single(page.first(), Some(&page.node), "config_differs", text)
    };
    pages.iter().filter(differs).map(told).collect()
}

/// Whether the record tells the same.
fn is_recorded(record: &SlotRecord, page: &NotePage, note: &Note) -> bool {
    let run = |attempt: u32| record.runs.iter().find(|run| run.attempt == attempt && run.node == page.node);
    match &note.decision {
        Decision::Claimed { attempt } | Decision::Started { attempt, .. } => run(*attempt).is_some(),
        Decision::Ended { attempt, .. } => run(*attempt).is_some_and(|run| run.ended_at.is_some()),
        _ => false,
    }
}

fn of_note(facts: &Facts, page: &NotePage, note: &Note) -> DecisionView {
    let (what, text) = match &note.decision {
        Decision::Overtaken { attempt, by } => ("overtaken", overtaken(&facts.record, (&page.node, *attempt), by)),
        decision => told(facts, decision),
    };
    let (node, attempt) = (Some(page.node.to_string()), note.decision.attempt());
    DecisionView { at: note.at, until: note.until, times: note.times, node, attempt, what, text }
}

/// Whether the attempt of a node and that of the other, which was granted the slot meanwhile, went on at the same time.
fn overtaken(record: &SlotRecord, (node, attempt): (&NodeName, u32), by: &NodeName) -> String {
    let own = record.runs.iter().rfind(|run| run.attempt == attempt && run.node == *node);
    let others = record.runs.iter().filter(|run| run.node == *by && own.is_none_or(|own| own.token != run.token));
    let overlaps = others.filter_map(|other| Some(Overlap::of(own?, other)));
    match overlaps.max().unwrap_or_default() {
        Overlap::Sure => format!("ran concurrently with {by}: the slot ran more than once"),
        Overlap::Possible => format!("may have run concurrently with {by}: the slot ran more than once"),
        Overlap::No => format!("the slot ran more than once: {by} ran it too, one run after the other"),
    }
}

fn by_whom(by: Option<&NodeName>) -> String {
    by.map_or_else(|| "another node".to_owned(), ToString::to_string)
}

fn told(facts: &Facts, decision: &Decision) -> (&'static str, String) {
    match decision {
        Decision::Ticked { tick } => {
            ("ticked", format!("scheduled for {}, tried to acquire the lease", facts.at(*tick)))
        }
        Decision::Asked => ("asked", "was asked to run it".to_owned()),
        Decision::NotSelected { wanted } => ("not_selected", format!("not selected: only_on requires {wanted}")),
        Decision::Claimed { attempt } => ("claimed", format!("claimed attempt {attempt}")),
        Decision::Held { by } => ("held", format!("held by {}", by_whom(by.as_ref()))),
        Decision::Done { by } => ("done", format!("done by {}", by_whom(by.as_ref()))),
        Decision::Exhausted => ("exhausted", "the attempts are exhausted".to_owned()),
        Decision::Backoff => ("backoff", "waited: an attempt had just failed".to_owned()),
        Decision::Paused => ("paused", "the job is paused".to_owned()),
        Decision::Blocked { by } => ("blocked", format!("another slot still runs on {}", by_whom(by.as_ref()))),
        Decision::Early => ("early", "refused: by the store's clock the slot had not started".to_owned()),
        Decision::Closed => ("closed", "refused: by the store's clock the slot had ended".to_owned()),
        Decision::TooLate => ("too_late", "the start deadline had passed".to_owned()),
        Decision::Shed => ("shed", "overloaded: the slot ended before the command could start".to_owned()),
        Decision::StoreAway { message } => ("store_away", format!("store unavailable: {message}")),
        Decision::Started { attempt, guarded } => (
            "started",
            if *guarded { format!("started attempt {attempt}") } else { "started without a guard".to_owned() },
        ),
        Decision::Ended { attempt, outcome, exit_code } => {
            let code = exit_code.map(|code| format!(", exit {code}")).unwrap_or_default();
            ("ended", format!("attempt {attempt} ended: {}{code}", outcome.as_str().replace('_', " ")))
        }
        Decision::LeaseInDoubt { attempt } => {
            ("lease_in_doubt", format!("the lease renewal of attempt {attempt} was overdue"))
        }
        Decision::LeaseLost { attempt } => ("lease_lost", format!("lost the lease of attempt {attempt}")),
        Decision::LeaseRestored { attempt } => ("lease_restored", format!("restored the lease of attempt {attempt}")),
        Decision::Overtaken { by, .. } => ("overtaken", format!("overtaken by {by}: the slot ran more than once")),
        Decision::Unsettled { attempt } => ("unsettled", format!("could not record the outcome of attempt {attempt}")),
        Decision::LockWaiting { locks, ahead, by, label, since: from, .. } => {
            let holder = holder(by.as_str(), label, from.map(|from| facts.at(from)).as_deref());
            ("lock_waiting", format!("waits for {locks}: {ahead} ahead; held by {holder}"))
        }
        Decision::LockHeld { locks, fence, .. } => ("lock_held", format!("got {locks} (fence {})", fence.0)),
        Decision::LockLost { attempt, to } => {
            let to = to.as_ref().map_or_else(String::new, |node| format!(" to a holder on node {node}"));
            ("lock_lost", format!("lost the locks of attempt {attempt}{to}"))
        }
        Decision::LockLeft { why, .. } => ("lock_left", format!("left the queue: {why}")),
        Decision::Unknown => ("unknown", "a decision of a later version of cronward".to_owned()),
    }
}
