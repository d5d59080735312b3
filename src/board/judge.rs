//! What needs a person, from all that is known. Reads nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use crate::board::faults::Faults;
use crate::board::line::Line;
use crate::board::patch::{ConcernsPatch, Patches};
use crate::board::sheet::Sheet;
use crate::board::store_loss::StoreLoss;
use crate::board::{BoardRow, Concern, ConcernKind, StoreStanding};
use crate::clock::{CLOCK_OFF, later};
use crate::message::{Topic, UntoldMessage, UntoldStage};
use crate::observe::view::{NodeState, NodeView};
use crate::slot::{SlotKey, SlotState, Verdict};
use crate::store::{HEARD_AGAIN, SILENCE};

/// A node that was lost so long ago is no news.
const NEWS: TimeDelta = TimeDelta::days(1);

/// A message that was not delivered for so long needs somebody to look at where it goes.
const SLOW: TimeDelta = TimeDelta::minutes(5);
/// Concerns that a patch has.
const TOLD: usize = 100;

/// Since when something lasts that has no time of its own, by its word: kept from one look to the next.
type Lasting = BTreeMap<String, DateTime<Utc>>;

/// The nodes and the concerns, as they are shown.
#[derive(Debug, Default)]
pub(super) struct Judgement {
    pub(super) nodes: Arc<Vec<NodeView>>,
    pub(super) concerns: Arc<Vec<Concern>>,
    lasting: Lasting,
    /// Since when, and until when, the store could not be used.
    outage: Option<(DateTime<Utc>, Option<DateTime<Utc>>)>,
    untold: BTreeMap<Topic, Vec<Concern>>,
}

impl Judgement {
    /// These are the nodes. What has become of them is told, and not each heartbeat.
    pub(super) fn take_nodes(&mut self, views: Vec<NodeView>, patches: &Patches) {
        let told = |views: &[NodeView]| {
            let told = |view: &NodeView| {
                let shown =
                    (view.version.clone(), view.differs.clone(), view.zones.clone(), view.zones_old, view.overdue);
                (view.node.clone(), view.state, shown)
            };
            views.iter().map(told).collect::<Vec<_>>()
        };
        if told(&views) != told(&self.nodes) {
            patches.push("nodes", &views);
        }
        self.nodes = Arc::new(views);
    }

    /// These messages about these topics are not told.
    pub(super) fn take_untold(&mut self, topics: &[Topic], messages: &[UntoldMessage], now: DateTime<Utc>) {
        topics.iter().for_each(|topic| drop(self.untold.remove(topic)));
        for message in messages {
            let Some(found) = undelivered(message, now) else { continue };
            let known = self.untold.entry(message.key.topic().clone()).or_default();
            match known.iter_mut().find_map(|known| known.messages_of_the_same(&found)) {
                Some(messages) => *messages += 1,
                None => known.push(found),
            }
        }
    }

    /// Weighs everything once more, and tells where something became another.
    pub(super) fn weigh(&mut self, sheet: &Sheet, store: &StoreStanding, loss: Option<&StoreLoss>, now: DateTime<Utc>) {
        let mut concerns = nodes(&self.nodes, now, &mut self.lasting);
        self.outage = outage(self.outage, loss.map(|loss| loss.since).or(store.away_since), now);
        // Nobody can be heard through a store that takes nothing: who was heard until then is not lost.
        let unheard = |seen: DateTime<Utc>| self.outage.is_some_and(|(since, _)| later(seen, SILENCE) > since);
        concerns.retain(|concern| !(matches!(concern.what, ConcernKind::NodeLost { .. }) && unheard(concern.since)));
        concerns.extend(away(store).or_else(|| unusable(loss)));
        concerns.extend(sheet.unreadable.concerns());
        concerns.extend(self.untold.values().flatten().cloned());
        for (line, row) in sheet.lines() {
            concerns.extend(failing(line, row, &sheet.faults));
            concerns.extend(late(line, row));
        }
        concerns.sort_by_key(Concern::rank);
        if concerns != *self.concerns {
            let told = concerns.get(..TOLD).unwrap_or(&concerns);
            sheet.patches.push("concerns", &ConcernsPatch { at: now, count: concerns.len(), concerns: told });
            self.concerns = Arc::new(concerns);
        }
    }
}

/// A time in which the store could not be used lasts until each node has had the time to be heard again.
fn outage(
    before: Option<(DateTime<Utc>, Option<DateTime<Utc>>)>,
    unusable: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Option<(DateTime<Utc>, Option<DateTime<Utc>>)> {
    match (before, unusable) {
        (before, Some(since)) => Some((before.map_or(since, |(first, _)| first.min(since)), None)),
        (Some((since, None)), None) => Some((since, Some(now))),
        (Some((since, Some(end))), None) => (now < later(end, HEARD_AGAIN)).then_some((since, Some(end))),
        (None, None) => None,
    }
}

/// How a job fails; none where it does not.
fn failing(line: &Line, row: &BoardRow, faults: &Faults) -> Option<Concern> {
    if line.job.orphaned || !line.job.entry.enabled {
        return None;
    }
    let (known, current) = (line.latest.as_ref()?.failing, row.view.current.as_ref());
    let key = current.and_then(|slot| slot.slot.parse::<SlotKey>().ok());
    let verdict = current.and_then(|slot| match slot.state {
        SlotState::Failed => Some(Verdict::Failed),
        // A slot from before the cluster knew the job is not missed.
        SlotState::Missed if line.job.owes(slot.end) || slot.verdict.is_some() => Some(Verdict::Missed),
        // Nobody tries again, though it is not over.
        SlotState::Pending | SlotState::Retrying if row.is_too_late() => Some(Verdict::Missed),
        _ => None,
    });
    // Where the store cannot record a verdict, nobody else tells of these.
    let uncounted = line.uncounted().filter(|uncounted| known.is_none_or(|known| known.last < uncounted.last));
    let counted = uncounted.map(|uncounted| uncounted.last).or(known.map(|failing| failing.last));
    // Its verdict comes when it is over; that nobody tries again is known now.
    let newer = key.zip(verdict).filter(|(key, _)| counted.is_none_or(|counted| counted < *key));
    let newest = newer.or(uncounted.map(|uncounted| (uncounted.last, uncounted.verdict)));
    let (slot, verdict) = newest.or(known.map(|failing| (failing.last, failing.verdict)))?;
    let slots = known.map_or(0, |failing| failing.slots)
        + uncounted.map_or(0, |uncounted| uncounted.slots)
        + u32::from(newer.is_some());
    let fault = faults.of(&line.job.entry.name, slot).cloned();
    let first = known.map(|failing| failing.since).or(uncounted.map(|uncounted| uncounted.first)).unwrap_or(slot);
    let ended = fault.as_ref().and_then(|fault| fault.ended).filter(|_| first == slot);
    let is_tried = |state| matches!(state, SlotState::Running | SlotState::Retrying);
    let trying = current.is_some_and(|current| is_tried(current.state)) && key.is_some_and(|key| key >= slot);
    let too_late = row.is_too_late() && key == Some(slot);
    let trying = trying && !row.is_too_late();
    let job = line.job.entry.name.clone();
    let what = ConcernKind::Failing { job, slot, verdict, slots, fault, trying, too_late };
    Some(Concern { since: ended.unwrap_or(first.start()), what })
}

/// How a job is late; none where it is not.
fn late(line: &Line, row: &BoardRow) -> Option<Concern> {
    let since = line.late_since().filter(|_| row.late)?;
    let last_success = line.latest.as_ref()?.success.map(|success| success.at);
    let alert_after = line.job.spec.as_ref()?.alert_after?;
    Some(Concern { since, what: ConcernKind::Late { job: line.job.entry.name.clone(), last_success, alert_after } })
}

/// That the store is away, or refuses.
fn away(store: &StoreStanding) -> Option<Concern> {
    let (since, error) = (store.away_since?, store.error.clone().unwrap_or_default());
    let what = if store.refuses { ConcernKind::StoreRefuses { error } } else { ConcernKind::StoreAway { error } };
    Some(Concern { since, what })
}

/// That the node cannot use the store, though it answers.
fn unusable(loss: Option<&StoreLoss>) -> Option<Concern> {
    let StoreLoss { since, error, .. } = loss?;
    Some(Concern { since: *since, what: ConcernKind::StoreUnusable { error: error.clone() } })
}

/// That a message about a job or the cluster was given up, or waits for long; none where that is no news.
fn undelivered(message: &UntoldMessage, now: DateTime<Utc>) -> Option<Concern> {
    let job = match message.key.topic() {
        Topic::Job(job) => Some(job.clone()),
        Topic::Cluster => None,
    };
    let given_up = message.stage == UntoldStage::GivenUp && now - message.changed < NEWS;
    let waits = message.stage != UntoldStage::GivenUp && now - message.first > SLOW;
    let (sink, error) = (message.key.sink().to_owned(), message.error.clone().unwrap_or_default());
    let what = ConcernKind::Undelivered { job, sink, error, messages: 1 };
    (given_up || waits).then_some(Concern { since: message.first, what })
}

/// What is wrong with the nodes.
fn nodes(nodes: &[NodeView], now: DateTime<Utc>, lasting: &mut Lasting) -> Vec<Concern> {
    let mut still = Lasting::new();
    let mut since = |word: String| *still.entry(word.clone()).or_insert(lasting.get(&word).copied().unwrap_or(now));
    let mut found = Vec::new();
    for view in nodes {
        let node = view.node.clone();
        if view.state == NodeState::Lost && now - view.seen < NEWS {
            let what = ConcernKind::NodeLost { node: node.clone(), running: view.running.clone() };
            found.push(Concern { since: view.seen, what });
        }
        if view.state.is_gone() {
            continue;
        }
        if view.clock_offset_s.abs() > CLOCK_OFF.as_secs_f64() {
            let what = ConcernKind::ClockOff { node: node.clone(), offset_s: view.clock_offset_s };
            found.push(Concern { since: since(format!("clock {node}")), what });
        }
        if !view.differs.is_empty() {
            let what = ConcernKind::FilesDiffer { node: node.clone(), jobs: view.differs.clone() };
            found.push(Concern { since: since(format!("file {node}")), what });
        }
        if view.zones_old {
            let what = ConcernKind::ZonesOld { node: node.clone(), zones: view.zones.clone().unwrap_or_default() };
            found.push(Concern { since: since(format!("zones {node}")), what });
        }
    }
    let there = nodes.iter().filter(|view| !view.state.is_gone());
    let versions: BTreeSet<&String> = there.map(|view| &view.version).collect();
    if versions.len() > 1 {
        let versions = versions.into_iter().cloned().collect();
        found.push(Concern { since: since("versions".to_owned()), what: ConcernKind::VersionsDiffer { versions } });
    }
    *lasting = still;
    found
}
