//! Who held which lock beside whom: by what the processes that held them wrote of themselves, in the order of the file. What
//! cronward tells is asked only where two that exclude each other ran at the same time.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::excuse::{self, Excuse};
use super::judge::Evidence;
use super::record::{self, Line};
use super::workload::{self, Share};

/// A run that held locks, while it was at work.
pub(super) struct Hold {
    pub(super) line: Line,
    pub(super) shares: Vec<Share>,
    /// Which line of the file it began with.
    begun: usize,
    /// The line until which it lived for sure, and when that was: with which it ended, or of the last process that saw it alive.
    until: (usize, i64),
    /// It wrote its end itself.
    pub(super) has_ended: bool,
}

/// Two or more at the same time, or one after the other, as they should not be.
struct Conflict<'a> {
    lock: &'static str,
    what: String,
    /// Why, and whom it excuses; nothing where it is wrong.
    excuse: Option<Excuse>,
    newest: &'a Hold,
}

impl Hold {
    /// For people: whose it is. The attempts of a slot are one owner.
    pub(super) fn who(&self) -> String {
        self.line.slot()
    }

    pub(super) const fn began_before(&self, other: &Self) -> bool {
        self.begun < other.begun
    }

    /// Until when it lived for sure.
    pub(super) const fn until_ms(&self) -> i64 {
        self.until.1
    }

    fn words(&self) -> String {
        let Line { attempt, node, pid, lock_fence, .. } = &self.line;
        format!("{} (attempt {attempt} on {node}, process {pid}, number {lock_fence})", self.who())
    }

    fn share(&self, lock: &str) -> Option<Share> {
        self.shares.iter().find(|share| share.lock == lock).copied()
    }
}

/// Whatever is wrong with the locks of a run.
pub(super) fn complaints(evidence: &Evidence) -> Vec<String> {
    let Some(standing) = &evidence.standing else { return Vec::new() };
    let mut complaints: Vec<String> =
        standing.iter().map(|entry| format!("(all): all have left, and an entry stands: {entry}")).collect();
    let lines = record::lines(&evidence.recorder);
    complaints.extend(lines.iter().filter(|line| line.event == "start").filter_map(without_its_locks));
    complaints.extend(evidence.outsiders().iter().filter_map(odd_end));
    let holds = holds(&lines);
    let wrong = conflicts(evidence, &holds).into_iter().filter(|conflict| conflict.excuse.is_none());
    complaints.extend(wrong.map(|Conflict { lock, what, newest, .. }| format!("{}: {lock}: {what}", newest.who())));
    complaints
}

/// For the figures; nothing where the store keeps no locks.
pub(super) fn summary(evidence: &Evidence) -> Value {
    if evidence.standing.is_none() {
        return Value::Null;
    }
    let holds = holds(&record::lines(&evidence.recorder));
    let (outside, of_jobs): (Vec<_>, Vec<_>) = holds.iter().partition(|hold| workload::is_outside(&hold.line.job));
    let told = |event: &str| evidence.told().filter(|line| line["event"] == event).count();
    let mut excused: BTreeMap<&str, usize> = BTreeMap::new();
    for conflict in conflicts(evidence, &holds) {
        *excused.entry(conflict.excuse.map_or("nothing", |excuse| excuse.kind)).or_default() += 1;
    }
    let codes = evidence.outsiders().into_iter().map(|end| end["code"].to_string());
    let codes = codes.fold(BTreeMap::<String, usize>::new(), |mut codes, code| {
        *codes.entry(code).or_default() += 1;
        codes
    });
    json!({
        "held_by_jobs": of_jobs.len(), "held_by_outsiders": outside.len(), "waits": told("lock_waiting"),
        "losses": told("lock_lost"), "conflicts_by_excuse": excused, "outsiders_by_code": codes,
    })
}

/// Every lock of the workload was held by everybody who asks for it.
pub(super) fn held_by_nobody(evidence: &Evidence) -> Vec<String> {
    let lines = record::lines(&evidence.recorder);
    let held: BTreeSet<&str> = lines.iter().filter(|line| line.lock_fence > 0).map(|line| &*line.job).collect();
    let asked = workload::names().chain(workload::OUTSIDERS.iter().map(|outsider| outsider.name));
    asked.filter(|name| !workload::shares(name).is_empty() && !held.contains(name)).map(str::to_owned).collect()
}

/// It was told what it holds, in the order in which it asked.
fn without_its_locks(line: &Line) -> Option<String> {
    let names: Vec<&str> = workload::shares(&line.job).iter().map(|share| share.lock).collect();
    let told = names.join(" ") == line.locks && names.is_empty() == (line.lock_fence == 0);
    let Line { locks, lock_fence, .. } = line;
    (!told).then(|| format!("{}: it began with locks {locks:?}, number {lock_fence}", line.slot()))
}

/// A command line that is wrong, or a bug.
fn odd_end(end: &Value) -> Option<String> {
    let is_odd = matches!(end["code"].as_i64(), Some(64 | 70 | 78 | 101 | 127 | 134));
    is_odd.then(|| format!("{}: it ended so: {end}", end["who"].as_str().unwrap_or_default()))
}

/// All runs with locks, in the order in which they began.
pub(super) fn holds(lines: &[Line]) -> Vec<Hold> {
    let mut holds: Vec<Hold> = Vec::new();
    // By process, the newest of each number.
    let mut known: BTreeMap<i32, usize> = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        for other in line.beside.split_whitespace().filter_map(|pid| known.get(&pid.parse().ok()?).copied()) {
            // Whoever has recorded its end is done, though its process may take a moment more.
            if !holds[other].has_ended {
                holds[other].until = (at, line.at_ms);
            }
        }
        let shares = workload::shares(&line.job);
        if line.event == "start" && !shares.is_empty() {
            known.insert(line.pid, holds.len());
            holds.push(Hold { line: line.clone(), shares, begun: at, until: (at, line.at_ms), has_ended: false });
        } else if let Some(own) = known.get(&line.pid).copied().filter(|own| holds[*own].who() == line.slot()) {
            (holds[own].until, holds[own].has_ended) = ((at, line.at_ms), true);
        }
    }
    holds
}

/// Those who held a lock at the same time though they exclude each other, and those who held it later with a smaller number.
fn conflicts<'a>(evidence: &Evidence, holds: &'a [Hold]) -> Vec<Conflict<'a>> {
    let mut found = Vec::new();
    for lock in workload::LOCKS {
        let of_lock: Vec<(&Hold, Share)> = holds.iter().filter_map(|hold| Some((hold, hold.share(lock)?))).collect();
        for (at, newest) in of_lock.iter().enumerate() {
            found.extend(overlap(evidence, lock, newest, &of_lock[..at]));
            found.extend(number_back(evidence, lock, newest, &of_lock[..at]));
        }
    }
    found
}

fn overlap<'a>(
    evidence: &Evidence,
    lock: &'static str,
    newest: &(&'a Hold, Share),
    before: &[(&'a Hold, Share)],
) -> Option<Conflict<'a>> {
    let lives = |one: &&(&Hold, Share)| one.0.until.0 >= newest.0.begun;
    let mut open: Vec<&(&Hold, Share)> = before.iter().filter(lives).chain([newest]).collect();
    if fits(&open) {
        return None;
    }
    let words: Vec<String> = open.iter().map(|one| one.0.words()).collect();
    let what = format!("held at the same time by {}", words.join(" and "));
    // Whoever was let in last did so rightly: it is the others who should have been over.
    let last = open.iter().map(|one| one.0.line.lock_fence).max()?;
    let excuse = |one: &&(&Hold, Share)| excuse::of(evidence, one.0, newest.0);
    let excuses: Vec<Option<Excuse>> =
        open.iter().map(|one| excuse(one).filter(|_| one.0.line.lock_fence < last)).collect();
    let mut silent = excuses.iter().map(Option::is_none);
    open.retain(|_| silent.next().unwrap_or(true));
    let excuse = excuses.into_iter().flatten().next().filter(|_| fits(&open));
    Some(Conflict { lock, what, excuse, newest: newest.0 })
}

/// Whether they may hold all at once, each owner counted once.
fn fits(open: &[&(&Hold, Share)]) -> bool {
    let mut weights: BTreeMap<String, u32> = BTreeMap::new();
    for (hold, share) in open {
        let weight = weights.entry(hold.who()).or_default();
        *weight = share.weight.max(*weight);
    }
    let least = open.iter().map(|one| one.1.of).min().unwrap_or(u32::MAX);
    weights.values().sum::<u32>() <= least
}

/// Of two that exclude each other the one that began later has the larger number.
fn number_back<'a>(
    evidence: &Evidence,
    lock: &'static str,
    newest: &(&'a Hold, Share),
    before: &[(&'a Hold, Share)],
) -> Option<Conflict<'a>> {
    let number = newest.0.line.lock_fence;
    let mut larger = before.iter().filter(|one| one.0.line.lock_fence >= number);
    let earlier = larger.find(|one| one.0.who() != newest.0.who() && !fits(&[one, newest]))?;
    let what = format!("the number went back from {} to {}", earlier.0.words(), newest.0.words());
    Some(Conflict { lock, what, excuse: excuse::of(evidence, newest.0, earlier.0), newest: newest.0 })
}
