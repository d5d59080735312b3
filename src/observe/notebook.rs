//! Notes what this process decides on slots, and hands it to the store once in a while, so that `cronward why` can tell
//! later. Best effort: what cannot be kept is lost, and nothing waits for it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::{Clock, later};
use crate::event::{Event, lock_names};
use crate::job::{JobName, NodeName};
use crate::observe::Observer;
use crate::reply::ClaimAnswer;
use crate::slot::{Decision, NotePage, Slot, SlotKey};
use crate::store::{ErrorKind, Store, StoreError};

/// Slots that are noted on at once. Of more, those that come later are not: a store that is away for long may not fill the
/// memory.
const MOST_SLOTS: usize = 20_000;

/// Slots that the node had no room for and that are noted between two flushes: of thousands in a minute some are named, and the
/// store is not asked to keep a page for each.
const MOST_SHED: usize = 64;

/// Pages that are handed to the store in one call.
const AT_ONCE: usize = 200;

/// A page is put away so long after its slot's end. What happens later is noted on a new one.
const LINGER: Duration = Duration::from_secs(60);

/// What this process notes.
#[derive(Debug)]
pub struct Notebook {
    clock: Arc<dyn Clock>,
    node: NodeName,
    /// Fresh for each process: the first part of its pages' ids.
    instance: String,
    state: Mutex<NotebookState>,
    /// One flush at a time, so that an old form of a page never takes the place of a newer one.
    flushing: tokio::sync::Mutex<()>,
    refused: AtomicBool,
}

#[derive(Debug, Default)]
struct NotebookState {
    pages: BTreeMap<(JobName, SlotKey), OpenPage>,
    /// Pages begun so far: the second part of their ids.
    begun: u64,
    /// Noted since the last flush as those that there was no room for.
    shed: usize,
    hashes: BTreeMap<JobName, String>,
}

#[derive(Debug)]
struct OpenPage {
    slot: Slot,
    page: NotePage,
    /// Counts the page's changes, and those that the store has.
    changes: u64,
    saved: u64,
}

impl Notebook {
    /// An empty notebook. `instance` is random, and another for each process.
    pub fn new(clock: Arc<dyn Clock>, node: NodeName, instance: &str) -> Self {
        let instance = instance.chars().take(16).collect();
        Self {
            clock,
            node,
            instance,
            state: Mutex::default(),
            flushing: tokio::sync::Mutex::default(),
            refused: AtomicBool::new(false),
        }
    }

    /// The jobs' hashes from now on.
    pub fn plan(&self, hashes: BTreeMap<JobName, String>) {
        self.lock().hashes = hashes;
    }

    /// Whether the store has refused notes, and not because it was away.
    pub fn is_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// Notes a decision, made now.
    pub fn add(&self, slot: &Slot, decision: Decision) {
        let at = self.clock.now().wall;
        let mut state = self.lock();
        let key = (slot.job().clone(), slot.key());
        if !state.pages.contains_key(&key) {
            if state.pages.len() >= MOST_SLOTS {
                return;
            }
            state.begun += 1;
            let (id, hash) = (format!("{}.{}", self.instance, state.begun), state.hashes.get(slot.job()).cloned());
            let page = NotePage::new(id, self.node.clone(), hash, at);
            state.pages.insert(key.clone(), OpenPage { slot: slot.clone(), page, changes: 0, saved: 0 });
        }
        if let Some(open) = state.pages.get_mut(&key) {
            open.page.add(at, decision);
            open.changes += 1;
        }
    }

    /// Hands what is new to the store; what it does not take is handed over again the next time.
    pub async fn flush(&self, store: &dyn Store) {
        let _alone = self.flushing.lock().await;
        for part in self.unsaved().chunks(AT_ONCE) {
            let pages: Vec<(Slot, NotePage)> =
                part.iter().map(|(slot, page, _)| (slot.clone(), page.clone())).collect();
            match store.note(&pages).await {
                Ok(()) => self.saved(part),
                Err(error) if error.kind == ErrorKind::Content => {
                    if let Err(error) = self.flush_each(store, part).await {
                        return self.tell(&error);
                    }
                }
                Err(error) => return self.tell(&error),
            }
        }
        self.put_away();
    }

    /// Hands pages over one by one. A page whose content the store refuses is dropped as it is now.
    async fn flush_each(&self, store: &dyn Store, part: &[(Slot, NotePage, u64)]) -> Result<(), StoreError> {
        for one in part {
            match store.note(&[(one.0.clone(), one.1.clone())]).await {
                Ok(()) => {}
                Err(error) if error.kind == ErrorKind::Content => self.tell(&error),
                Err(error) => return Err(error),
            }
            self.saved(std::slice::from_ref(one));
        }
        Ok(())
    }

    /// An overloaded node lets thousands of short slots pass in a minute: beyond the first of them, pages that say no more than that
    /// would take the room of those that say something.
    fn shed(&self, slot: &Slot) {
        let mut state = self.lock();
        if state.shed < MOST_SHED {
            state.shed += 1;
            drop(state);
            return self.add(slot, Decision::Shed);
        }
        let key = (slot.job().clone(), slot.key());
        if state.pages.get(&key).is_some_and(|open| open.saved == 0) {
            state.pages.remove(&key);
        }
    }

    fn unsaved(&self) -> Vec<(Slot, NotePage, u64)> {
        let state = self.lock();
        let new = state.pages.values().filter(|open| open.saved < open.changes);
        new.map(|open| (open.slot.clone(), open.page.clone(), open.changes)).collect()
    }

    fn saved(&self, part: &[(Slot, NotePage, u64)]) {
        let mut state = self.lock();
        for (slot, _, changes) in part {
            if let Some(open) = state.pages.get_mut(&(slot.job().clone(), slot.key())) {
                open.saved = *changes;
            }
        }
    }

    fn put_away(&self) {
        let now: DateTime<Utc> = self.clock.now().wall;
        let mut state = self.lock();
        state.shed = 0;
        state.pages.retain(|_, open| open.saved < open.changes || later(open.slot.end(), LINGER) > now);
    }

    /// That the store is away is told of by those who need it; that it refuses notes and nothing else, by nobody else.
    fn tell(&self, error: &StoreError) {
        if !error.is_transient() && !self.refused.swap(true, Ordering::Relaxed) {
            tracing::warn!(%error, "decision log not written: cronward why will show less");
        }
    }

    fn lock(&self) -> MutexGuard<'_, NotebookState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Notebook {
    fn event(&self, slot: Option<&Slot>, event: &Event) {
        let Some(slot) = slot else { return };
        if *event == Event::Shed {
            self.shed(slot);
        } else if let Some(decision) = decision(event) {
            self.add(slot, decision);
        }
    }
}

/// What an event says of the decision; none where the store's record or another event says it.
fn decision(event: &Event) -> Option<Decision> {
    Some(match event {
        Event::ClaimAnswered { answer, by, .. } => return answered(*answer, by.clone()),
        Event::Granted { attempt, .. } => Decision::Claimed { attempt: *attempt },
        // The record of the run says what was left out.
        Event::StoreFailed { kind: ErrorKind::Content, .. } => return None,
        Event::StoreFailed { error, .. } => Decision::store_away(error),
        Event::RunStarted { attempt, guarded, .. } => Decision::Started { attempt: *attempt, guarded: *guarded },
        Event::RunEnded { attempt, outcome, exit_code, .. } => {
            Decision::Ended { attempt: *attempt, outcome: *outcome, exit_code: *exit_code }
        }
        Event::LeaseInDoubt { attempt, .. } => Decision::LeaseInDoubt { attempt: *attempt },
        Event::LeaseLost { attempt, .. } => Decision::LeaseLost { attempt: *attempt },
        Event::LeaseRestored { attempt } => Decision::LeaseRestored { attempt: *attempt },
        Event::Overtaken { attempt, by, unstarted: false, .. } => {
            Decision::Overtaken { attempt: *attempt, by: by.clone() }
        }
        Event::SettlementGivenUp { attempt, .. } => Decision::Unsettled { attempt: *attempt },
        Event::StartDeadlinePassed => Decision::TooLate,
        Event::LockWaiting(_) | Event::LockHeld(_) | Event::LockLost(_) | Event::LockLeft(_) => return of_locks(event),
        // The store's record has the verdict, too, and who recorded it; that there was no room is noted by itself.
        _ => return None,
    })
}

fn of_locks(event: &Event) -> Option<Decision> {
    Some(match event {
        Event::LockWaiting(wait) => Decision::LockWaiting {
            attempt: wait.attempt,
            locks: lock_names(&wait.locks),
            ahead: wait.ahead,
            by: wait.by.clone(),
            label: wait.by_label.clone(),
            since: wait.since,
        },
        Event::LockHeld(grant) => {
            Decision::LockHeld { attempt: grant.attempt, locks: lock_names(&grant.locks), fence: grant.fence }
        }
        Event::LockLost(loss) if !loss.unstarted => Decision::LockLost { attempt: loss.attempt, to: loss.to.clone() },
        // That a run has left them when it was over says nothing.
        Event::LockLeft(leave) => Decision::LockLeft { attempt: leave.attempt, why: leave.why.clone()? },
        _ => return None,
    })
}

fn answered(answer: ClaimAnswer, by: Option<NodeName>) -> Option<Decision> {
    Some(match answer {
        ClaimAnswer::Held => Decision::Held { by },
        ClaimAnswer::Done => Decision::Done { by },
        ClaimAnswer::Exhausted => Decision::Exhausted,
        ClaimAnswer::Backoff => Decision::Backoff,
        ClaimAnswer::Paused => Decision::Paused,
        ClaimAnswer::Blocked => Decision::Blocked { by },
        ClaimAnswer::Early => Decision::Early,
        ClaimAnswer::Closed => Decision::Closed,
        // The grant is told with its number.
        ClaimAnswer::Claimed | ClaimAnswer::Unknown => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::error::{Applied, Op};
    use crate::store::StoreOptions;
    use crate::store::layer::{Chaos, ChaosFault};
    use crate::store::memory::MemoryStore;

    fn slot() -> Slot {
        Slot::parse("a", "2026-11-21T14Z", "2026-11-21T15Z").unwrap()
    }

    struct Desk {
        clock: ManualClock,
        store: Arc<dyn Store>,
        notes: Notebook,
    }

    fn desk() -> Desk {
        let clock = ManualClock::at("2026-11-21T14:00:01Z".parse().unwrap());
        let store = Arc::new(MemoryStore::new(StoreOptions::default(), Arc::new(clock.clone())));
        let node = NodeName::new("n").unwrap();
        let notes = Notebook::new(Arc::new(clock.clone()), node, "0123456789abcdef0123");
        Desk { clock, store, notes }
    }

    fn held(by: &str) -> Event {
        let by = Some(NodeName::new(by).unwrap());
        Event::ClaimAnswered { answer: ClaimAnswer::Held, by, foreign: false, begins_in: None }
    }

    #[tokio::test]
    async fn what_is_decided_is_in_the_store_after_a_flush_and_not_before() {
        let desk = desk();
        desk.notes.plan(BTreeMap::from([(slot().job().clone(), "c0ffee".to_owned())]));
        desk.notes.event(Some(&slot()), &held("b"));
        desk.notes.event(Some(&slot()), &held("b"));
        assert_eq!(desk.store.notes(&slot()).await.unwrap(), []);
        desk.notes.flush(&*desk.store).await;
        let pages = desk.store.notes(&slot()).await.unwrap();
        assert_eq!((pages.len(), pages[0].id.as_str()), (1, "0123456789abcdef.1"));
        assert_eq!((pages[0].notes.len(), pages[0].notes[0].times), (1, 2));
        assert_eq!(pages[0].job_hash.as_deref(), Some("c0ffee"));
    }

    #[tokio::test]
    async fn what_the_store_did_not_take_is_handed_over_again() {
        let desk = desk();
        let chaos = Chaos::scripted();
        chaos.next(Op::Note, ChaosFault::LoseRequest);
        let faulty = chaos.over(Arc::clone(&desk.store));
        desk.notes.event(Some(&slot()), &held("b"));
        desk.notes.flush(&faulty).await;
        assert_eq!(desk.store.notes(&slot()).await.unwrap(), []);
        desk.notes.flush(&faulty).await;
        assert_eq!(desk.store.notes(&slot()).await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_page_whose_content_the_store_refuses_is_dropped_and_keeps_no_other_from_the_store() {
        let desk = desk();
        let (chaos, other) = (Chaos::scripted(), Slot::parse("b", "2026-11-21T14Z", "2026-11-21T15Z").unwrap());
        // The two together, then the first of them alone.
        chaos.next(Op::Note, ChaosFault::RefuseContent);
        chaos.next(Op::Note, ChaosFault::RefuseContent);
        let faulty = chaos.over(Arc::clone(&desk.store));
        desk.notes.event(Some(&slot()), &held("b"));
        desk.notes.event(Some(&other), &held("b"));
        desk.notes.flush(&faulty).await;
        assert_eq!(desk.store.notes(&slot()).await.unwrap(), []);
        assert_eq!(desk.store.notes(&other).await.unwrap().len(), 1);
        desk.notes.flush(&faulty).await;
        assert_eq!(desk.store.notes(&slot()).await.unwrap(), [], "the same content is not handed over again");
        desk.notes.event(Some(&slot()), &Event::StartDeadlinePassed);
        desk.notes.flush(&faulty).await;
        assert_eq!(desk.store.notes(&slot()).await.unwrap().len(), 1, "other content is");
    }

    #[tokio::test]
    async fn nothing_new_costs_no_call() {
        let desk = desk();
        desk.notes.event(Some(&slot()), &held("b"));
        desk.notes.flush(&*desk.store).await;
        let chaos = Chaos::scripted();
        chaos.next(Op::Note, ChaosFault::LoseRequest);
        let faulty = chaos.over(Arc::clone(&desk.store));
        desk.notes.flush(&faulty).await;
        assert!(faulty.note(&[]).await.is_err(), "the fault still waits for the first call");
    }

    #[tokio::test]
    async fn what_happens_after_a_page_was_put_away_is_noted_beside_it() {
        let desk = desk();
        desk.notes.event(Some(&slot()), &held("b"));
        desk.clock.advance(Duration::from_secs(3_600));
        desk.notes.flush(&*desk.store).await;
        desk.clock.advance(LINGER);
        desk.notes.flush(&*desk.store).await;
        desk.notes.event(Some(&slot()), &Event::StartDeadlinePassed);
        desk.notes.flush(&*desk.store).await;
        let pages = desk.store.notes(&slot()).await.unwrap();
        let noted: Vec<_> = pages.iter().flat_map(|page| &page.notes).map(|note| &note.decision).collect();
        assert_eq!(noted, [&Decision::Held { by: Some(NodeName::new("b").unwrap()) }, &Decision::TooLate]);
    }

    #[tokio::test]
    async fn of_the_slots_that_the_node_had_no_room_for_some_are_noted_after_each_flush_and_the_others_take_no_page() {
        let desk = desk();
        let shed = |second: i64| {
            let start = slot().start() + chrono::TimeDelta::seconds(second);
            let slot = Slot::new(slot().job().clone(), start, later(start, LINGER)).unwrap();
            desk.notes.add(&slot, Decision::Ticked { tick: start });
            desk.notes.event(Some(&slot), &Event::Shed);
            slot
        };
        let first = shed(0);
        (1..5_000).for_each(|second| drop(shed(second)));
        assert_eq!(desk.notes.unsaved().len(), MOST_SHED);
        desk.notes.flush(&*desk.store).await;
        let pages = desk.store.notes(&first).await.unwrap();
        assert_eq!(pages[0].notes.last().map(|note| &note.decision), Some(&Decision::Shed));
        shed(5_000);
        assert_eq!(desk.notes.unsaved().len(), 1);
    }

    #[test]
    fn a_long_error_is_cut() {
        let desk = desk();
        let error = StoreError::new(ErrorKind::Timeout, Applied::No, Op::Claim, "redis://h", "x".repeat(9_000));
        desk.notes
            .event(Some(&slot()), &Event::StoreFailed { op: error.op, kind: error.kind, error: error.to_string() });
        let (_, page, _) = desk.notes.unsaved().remove(0);
        let Decision::StoreAway { message } = &page.notes[0].decision else { panic!("{page:?}") };
        assert!(message.chars().count() <= 161, "{}", message.len());
    }

    #[test]
    fn a_store_that_is_away_for_long_does_not_fill_the_memory() {
        let desk = desk();
        for second in 0..u32::try_from(MOST_SLOTS + 5).unwrap() {
            let start = DateTime::from_timestamp(1_795_269_600 + i64::from(second), 0).unwrap();
            let slot = Slot::new(slot().job().clone(), start, later(start, LINGER)).unwrap();
            desk.notes.add(&slot, Decision::Exhausted);
        }
        assert_eq!(desk.notes.unsaved().len(), MOST_SLOTS);
    }
}
