//! Carries out what a node asks its store besides the slots: heartbeats, registration, verdicts, purging. Each question runs
//! in a task of its own, so that a slow store never delays a tick, and reports back to the loop.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::FutureExt;
use tokio::sync::mpsc;

use crate::clock::{Clock, Now};
use crate::job::NodeName;
use crate::node::action::{Looked, Question, Report};
use crate::node::drift::{DefinitionDrift, DriftReport};
use crate::observe::Notebook;
use crate::store::{
    Applied, ErrorKind, HeartbeatReply, NodeEntry, NodeReport, Op, Store, StoreError, handover, inspect_each,
};

/// Starts chores.
#[derive(Clone, Debug)]
pub(super) struct Chores {
    pub(super) store: Arc<dyn Store>,
    pub(super) node: NodeName,
    /// The machine's own, by which the store's is measured.
    pub(super) clock: Arc<dyn Clock>,
    pub(super) notes: Arc<Notebook>,
    pub(super) outbox: mpsc::UnboundedSender<Report>,
    /// The store has refused a whole report.
    pub(super) shortened: Arc<AtomicBool>,
    /// What other nodes define differently.
    pub(super) drift: Arc<Mutex<DefinitionDrift>>,
}

impl Chores {
    /// Asks. What nobody waits for is not reported.
    pub(super) fn ask(&self, question: Question) {
        let chores = self.clone();
        tokio::spawn(async move {
            if let Some(report) = chores.answer(question).await {
                // The loop may have ended; then nobody needs the answer.
                let _ = chores.outbox.send(report);
            }
        });
    }

    async fn answer(&self, question: Question) -> Option<Report> {
        match question {
            Question::Nodes => {
                let sent = self.clock.now();
                let reply = self.answered(Op::Nodes, self.store.nodes()).await;
                Some(Report::Nodes { sent, received: self.clock.now(), reply })
            }
            Question::Heartbeat { mut report, looks } => {
                let nodes = if looks { self.answered(Op::Nodes, self.store.nodes()).await.ok() } else { None };
                let looked = nodes.map(|(now, nodes)| {
                    self.warn_of_drift(&report, &nodes, now);
                    let left = handover::left(&nodes, (&report.name, &report.instance), now);
                    Looked { namesake: namesake(&report, nodes, now), left }
                });
                if let Some(looked) = &looked {
                    report.namesake.clone_from(&looked.namesake);
                }
                let (sent, reply) = self.beat(*report).await;
                Some(Report::Heartbeat { sent, received: self.clock.now(), reply, looked })
            }
            Question::Register { plan, jobs } => {
                let reply = self.answered(Op::Register, self.store.register(&jobs)).await;
                Some(Report::Registered { plan, reply })
            }
            Question::Close { slot, max_attempts } => {
                let reply = self.answered(Op::Close, self.store.close(&slot, max_attempts, &self.node)).await;
                Some(Report::Closed { slot, reply })
            }
            Question::Look(slots) => {
                // One that cannot be read keeps nobody from the others.
                let reply = self.answered(Op::Inspect, inspect_each(&*self.store, &slots)).await;
                Some(Report::Looked(reply.map(|(_, records)| records.into_iter().flatten().collect())))
            }
            Question::Purge => {
                // Whatever is left is removed next time; a store that is away is told of by the heartbeat.
                let _ = self.store.purge().await;
                None
            }
            Question::Note => {
                self.notes.flush(&*self.store).await;
                None
            }
        }
    }

    /// One heartbeat. A report that the store refuses for its content is sent again without details, and so is each after it.
    async fn beat(&self, mut report: NodeReport) -> (Now, Result<HeartbeatReply, StoreError>) {
        if self.shortened.load(Ordering::Relaxed) {
            shorten(&mut report);
        }
        let sent = self.clock.now();
        let reply = self.answered(Op::Heartbeat, self.store.heartbeat(&report)).await;
        match reply {
            Err(error) if error.kind == ErrorKind::Content && !self.shortened.swap(true, Ordering::Relaxed) => {
                tracing::warn!(%error, "heartbeat refused by the store: its labels and the hashes of its jobs are left out");
                shorten(&mut report);
                (self.clock.now(), self.answered(Op::Heartbeat, self.store.heartbeat(&report)).await)
            }
            reply => (sent, reply),
        }
    }

    fn warn_of_drift(&self, own: &NodeReport, nodes: &[NodeEntry], now: DateTime<Utc>) {
        let mut drift = self.drift.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(DriftReport { nodes, jobs }) = drift.look(own, nodes, now) {
            tracing::warn!(
                nodes,
                jobs,
                "live nodes define jobs differently: give every node one file, and each cluster its own [store] namespace"
            );
        }
    }

    async fn answered<T>(&self, op: Op, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        answered(op, self.store.location(), call).await
    }
}

/// Leaves out of a report what may be long and is for people alone.
fn shorten(report: &mut NodeReport) {
    // The names of the jobs stay: who had a job is how the next node knows what is owed.
    report.job_hashes.values_mut().for_each(String::clear);
    report.labels.clear();
    report.namesake = None;
}

/// The answer to a call; an error where the code of the store panics in it. The node waits for each answer before it asks again: of a
/// heartbeat that was never answered it would make no other.
async fn answered<T>(
    op: Op,
    location: &str,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let panicked = |_| {
        let message = "a fault of cronward itself: its code for this store panicked";
        Err(StoreError::new(ErrorKind::Unavailable, Applied::Maybe, op, location, message))
    };
    AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(panicked)
}

/// Another node that is alive and goes by the name of this one: the registry's entry is its, and it was heard of after this one
/// had started. An entry from before is what this node left when it ran last.
fn namesake(own: &NodeReport, nodes: Vec<NodeEntry>, now: DateTime<Utc>) -> Option<Box<NodeReport>> {
    // The start is by the node's clock, the heartbeat by the store's.
    let started = own.started_at - TimeDelta::milliseconds(own.clock_offset_ms);
    let is_other = |entry: &NodeEntry| {
        entry.report.name == own.name && entry.report.instance != own.instance && entry.seen > started
    };
    let other = nodes.into_iter().find(|entry| is_other(entry) && entry.is_alive(now))?;
    Some(Box::new(NodeReport { namesake: None, ..other.report }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::clock::ManualClock;
    use crate::slot::Slot;
    use crate::store::StoreOptions;
    use crate::store::layer::{Chaos, ChaosFault};
    use crate::store::memory::MemoryStore;

    fn report(instance: &str, started: &str) -> NodeReport {
        NodeReport {
            name: NodeName::new("a").unwrap(),
            instance: instance.to_owned(),
            version: "0.1.0".to_owned(),
            config_hash: String::new(),
            zones: None,
            job_hashes: BTreeMap::new(),
            labels: BTreeMap::new(),
            started_at: started.parse().unwrap(),
            clock_offset_ms: 0,
            running: Vec::new(),
            draining: false,
            stopped: false,
            namesake: None,
            behind: BTreeMap::new(),
            since: BTreeMap::new(),
            silent_since: None,
        }
    }

    #[tokio::test]
    async fn a_call_that_panics_is_an_answer_and_may_have_been_applied() {
        let error = answered::<()>(Op::Heartbeat, "memory:", async { panic!("no") }).await.unwrap_err();
        assert!(error.is_transient(), "{error}");
        assert_eq!(error.applied, Applied::Maybe);
        assert!(error.to_string().contains("memory:: heartbeat: a fault of cronward itself"), "{error}");
    }

    #[tokio::test]
    async fn a_slot_that_cannot_be_read_keeps_nobody_from_looking_at_the_others() {
        let clock = ManualClock::at("2026-11-21T12:10:00Z".parse().unwrap());
        let memory = MemoryStore::new(StoreOptions::default(), Arc::new(clock.clone()));
        memory.spoil(&["billing@2026-11-21T12Z"]);
        let (outbox, _) = mpsc::unbounded_channel();
        let (clock, node) = (Arc::new(clock) as Arc<dyn Clock>, NodeName::new("a").unwrap());
        let notes = Arc::new(Notebook::new(Arc::clone(&clock), node.clone(), "i1"));
        let chores = Chores {
            store: Arc::new(memory),
            node,
            clock,
            notes,
            outbox,
            shortened: Arc::default(),
            drift: Arc::default(),
        };
        let slots = ["billing", "mail"].map(|job| Slot::parse(job, "2026-11-21T12Z", "2026-11-21T13Z").unwrap());
        let looked = chores.answer(Question::Look(slots.to_vec())).await;
        let Some(Report::Looked(Ok(records))) = looked else { panic!("{looked:?}") };
        assert_eq!(records.iter().map(|record| &record.slot).collect::<Vec<_>>(), [&slots[1]]);
    }

    #[tokio::test]
    async fn a_heartbeat_that_the_store_refuses_for_its_content_is_sent_without_details_from_then_on() {
        let clock = ManualClock::at("2026-11-21T12:10:00Z".parse().unwrap());
        let memory: Arc<dyn Store> = Arc::new(MemoryStore::new(StoreOptions::default(), Arc::new(clock.clone())));
        let chaos = Chaos::scripted();
        chaos.next(Op::Heartbeat, ChaosFault::RefuseContent);
        let store = Arc::new(chaos.over(Arc::clone(&memory)));
        let (outbox, _) = mpsc::unbounded_channel();
        let (clock, node) = (Arc::new(clock) as Arc<dyn Clock>, NodeName::new("a").unwrap());
        let notes = Arc::new(Notebook::new(Arc::clone(&clock), node.clone(), "i1"));
        let drift = Arc::default();
        let chores = Chores { store, node, clock, notes, outbox, shortened: Arc::default(), drift };
        let labels = BTreeMap::from([("zone".to_owned(), "eu".to_owned())]);
        let billing: crate::job::JobName = "billing".parse().unwrap();
        let running = vec!["billing@2026-11-21T12Z".to_owned()];
        let job_hashes = BTreeMap::from([(billing.clone(), "c0ffee".to_owned())]);
        let whole = NodeReport { labels, job_hashes, running, ..report("i1", "2026-11-21T12:00:00Z") };
        for _ in 0..2 {
            let beat = chores.answer(Question::Heartbeat { report: Box::new(whole.clone()), looks: false }).await;
            assert!(matches!(beat, Some(Report::Heartbeat { reply: Ok(_), .. })), "{beat:?}");
            let sent = memory.nodes().await.unwrap().1.remove(0).report;
            assert_eq!((&sent.labels, sent.hash_of(&billing)), (&BTreeMap::new(), None));
            // Whoever comes next knows by these what the node may have left open.
            assert!(sent.has_unknown(&billing) && sent.running == whole.running, "{sent:?}");
        }
    }

    #[test]
    fn another_node_of_the_same_name_is_one_that_was_heard_of_since_this_one_started() {
        let (own, other) = (report("own", "2026-11-21T12:00:00Z"), report("other", "2026-11-21T09:00:00Z"));
        let found = |report: &NodeReport, seen: &str| {
            let entry = NodeEntry { report: report.clone(), seen: seen.parse().unwrap() };
            namesake(&own, vec![entry], "2026-11-21T12:00:30Z".parse().unwrap()).map(|report| report.instance)
        };
        assert_eq!(found(&other, "2026-11-21T12:00:25Z").as_deref(), Some("other"));
        assert_eq!(found(&other, "2026-11-21T11:59:59Z"), None, "this node ran before");
        assert_eq!(found(&own, "2026-11-21T12:00:25Z"), None);
        assert_eq!(found(&NodeReport { stopped: true, ..other }, "2026-11-21T12:00:25Z"), None);
    }
}
