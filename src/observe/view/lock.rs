//! Locks and their queues, as a program reads them.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::clock::between;
use crate::job::{LockName, NodeName};
use crate::observe::view::AuditView;
use crate::observe::view::slot::seconds;
use crate::resource::{LockEntry, LockRecord, OwnerId, UNLIMITED, deadlocks};
use crate::slot::Token;

/// One lock: each element of `locks --json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LockView {
    /// Its name.
    pub lock: LockName,
    /// What those who hold weigh in all.
    pub held: u64,
    /// The most that those who hold may weigh; null where nobody holds, or they share without a limit.
    pub limit: Option<u32>,
    /// How many wait.
    pub waiting: usize,
    /// How long the first of them has waited; null where nobody does.
    pub oldest_wait_s: Option<f64>,
    /// Those who hold and those who wait, in the order of the queue.
    pub queue: Vec<LockEntryView>,
    /// Operators' verbs, in order.
    pub audit: Vec<AuditView>,
}

/// One request in the queue of a lock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LockEntryView {
    /// Where it stands: smaller ones come first.
    pub place: u64,
    /// The request's token.
    pub token: Token,
    /// Whose it is.
    pub owner: OwnerId,
    /// On which node.
    pub node: NodeName,
    /// What for; may be empty.
    pub label: String,
    /// What it asked for, as it is written: `db`, `db:shared`, `gpu:2/4`.
    pub demand: String,
    /// What it weighs.
    pub weight: u32,
    /// The most that may be held beside it, itself included; null where it shares without a limit.
    pub of: Option<u32>,
    /// Whether it holds.
    pub holds: bool,
    /// How many of other owners stand before it.
    pub ahead: usize,
    /// The node of the first of these; null where it holds.
    pub waits_for: Option<NodeName>,
    /// Whether it waits in a ring of requests, each for the next: somebody of the ring has to leave.
    pub deadlocked: bool,
    /// Its fence number; null until it was told that it holds.
    pub fence: Option<u64>,
    /// When it came, by the store's clock.
    pub asked: Option<DateTime<Utc>>,
    /// When it was told that it holds, by the store's clock; null before.
    pub since: Option<DateTime<Utc>>,
    /// For how long it has held, or waited.
    pub age_s: f64,
    /// How long its lease lasts unless renewed.
    pub remaining_s: f64,
}

impl LockView {
    /// The views of what the store has, at `now`, the store's clock at the time of reading. A ring of waits is seen where all of its
    /// locks are among these.
    pub fn all(records: &[LockRecord], now: DateTime<Utc>) -> Vec<Self> {
        let ring: BTreeSet<Token> = deadlocks(records).into_iter().flatten().map(|step| step.entry.token).collect();
        let mut views: Vec<Self> = records.iter().map(|record| Self::of(record, now)).collect();
        for entry in views.iter_mut().flat_map(|view| &mut view.queue) {
            entry.deadlocked = !entry.holds && ring.contains(&entry.token);
        }
        views
    }

    fn of(record: &LockRecord, now: DateTime<Utc>) -> Self {
        let queue: Vec<LockEntryView> =
            record.entries.iter().map(|entry| LockEntryView::of(record, entry, now)).collect();
        Self {
            lock: record.lock.clone(),
            held: record.held(),
            limit: record.limit(),
            waiting: record.waiting().count(),
            oldest_wait_s: queue.iter().find(|entry| !entry.holds).map(|entry| entry.age_s),
            queue,
            audit: record.audit.iter().map(AuditView::of).collect(),
        }
    }
}

impl LockEntryView {
    fn of(record: &LockRecord, entry: &LockEntry, now: DateTime<Utc>) -> Self {
        let (asked, since) = (entry.asked(), entry.since());
        let first = record.before(entry).next();
        Self {
            place: entry.place,
            token: entry.token,
            owner: entry.by.owner,
            node: entry.by.node.clone(),
            label: entry.by.label.clone(),
            demand: entry.demand.to_string(),
            weight: entry.demand.weight(),
            of: Some(entry.demand.of()).filter(|of| *of != UNLIMITED),
            holds: entry.holds,
            ahead: record.before(entry).count(),
            waits_for: first.filter(|_| !entry.holds).map(|first| first.by.node.clone()),
            deadlocked: false,
            fence: entry.by.fence.map(|fence| fence.0),
            asked,
            since,
            age_s: since.or(asked).map_or(0.0, |from| seconds(between(from, now))),
            remaining_s: seconds(entry.remaining),
        }
    }
}
