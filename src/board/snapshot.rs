//! What is shown: everything that is known of the cluster at one moment, by the store's clock. Values only.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::board::{Concern, ConcernKind, HourCell};
use crate::job::JobSpec;
use crate::observe::view::{JobView, NoStart, NodeView};
use crate::store::{Store, StoreError};
use crate::text::message;

/// Characters of an error that are kept.
pub(super) const LONGEST: usize = 300;

/// Everything that is known at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Which moment: `<boot>-<n>`, the number of the last [`super::Patch`] that is in it. A stream goes on from there.
    pub version: String,
    /// The store's clock at this moment: what was read last, and what has passed since.
    pub store_time: DateTime<Utc>,
    /// When the current slots were read last, by the store's clock; none before the first time.
    pub read_at: Option<DateTime<Utc>>,
    /// How the store is.
    pub store: StoreStanding,
    /// The starts of the hours of each row's cells, oldest first.
    pub hours: Vec<DateTime<Utc>>,
    /// How many of them were read, the newest first.
    pub filled: usize,
    /// One for each job, by name.
    pub rows: Vec<Arc<BoardRow>>,
    /// Every node that the registry knows.
    pub nodes: Arc<Vec<NodeView>>,
    /// What needs a person, the most urgent first.
    pub concerns: Arc<Vec<Concern>>,
    /// What could not be used of the registry, in words.
    pub warnings: Vec<String>,
}

/// One job.
#[derive(Clone, Debug)]
pub struct BoardRow {
    /// As programs read it (`jobs --json`).
    pub view: JobView,
    /// As this node's file says it: its description, owner, runbook, tags, timeout. None where the file does not have it.
    pub spec: Option<Arc<JobSpec>>,
    /// One for each of [`Snapshot::hours`].
    pub cells: Vec<HourCell>,
    /// The last success is older than `alert_after`.
    pub late: bool,
}

impl BoardRow {
    /// Whether no node starts the current slot, whose start deadline has passed, though it is not done.
    pub(crate) fn is_too_late(&self) -> bool {
        self.view.no_start == Some(NoStart::TooLate)
    }

    /// Whether nobody who looks would see a difference.
    pub(super) fn shows_the_same(&self, other: &Self) -> bool {
        self.view == other.view && self.cells == other.cells && self.late == other.late
    }
}

/// How the store is, as this node sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StoreStanding {
    /// Where it is, without secrets.
    pub location: String,
    /// Its kind.
    pub kind: &'static str,
    /// Since when it does not answer, or refuses, by the store's clock as it was known; null while it does.
    pub away_since: Option<DateTime<Utc>>,
    /// True while it answers with a refusal, of which waiting is no cure: a password, a permission, data that is not cronward's.
    pub refuses: bool,
    /// Why, in one line and without secrets; null while it answers.
    pub error: Option<String>,
    /// How long its last answer took, in milliseconds; null before the first.
    pub latency_ms: Option<u32>,
    /// True when it tells what changes; otherwise it is looked at every five seconds.
    pub tells: bool,
}

impl StoreStanding {
    /// Of a store that was not asked yet.
    pub(super) fn of(store: &dyn Store) -> Self {
        let capability = store.capability();
        let (location, kind, tells) = (store.location().to_owned(), capability.name, capability.tells_changes);
        Self { location, kind, tells, ..Self::default() }
    }

    /// It does not answer, or refuses. Answers whether that is news.
    pub(super) fn fails(&mut self, error: &StoreError, now: DateTime<Utc>) -> bool {
        self.away_since.get_or_insert(now);
        let told = Some(message(&error.to_string(), LONGEST));
        let was = (std::mem::replace(&mut self.refuses, error.is_refusal()), std::mem::replace(&mut self.error, told));
        was.0 != self.refuses || was.1 != self.error
    }

    /// It answers again.
    pub(super) fn recovers(&mut self) {
        (self.away_since, self.refuses, self.error) = (None, false, None);
    }
}

impl Snapshot {
    /// Whether anything was read at all.
    pub const fn is_read(&self) -> bool {
        self.read_at.is_some()
    }

    /// Since when this node cannot use a store that answers, and why; none where it can, or where the store is away.
    pub fn unusable(&self) -> Option<(DateTime<Utc>, &str)> {
        self.concerns.iter().find_map(|concern| match &concern.what {
            ConcernKind::StoreUnusable { error } => Some((concern.since, error.as_str())),
            _ => None,
        })
    }

    /// Whether something may be changed at the store, as far as is known.
    pub fn takes_changes(&self) -> bool {
        self.store.error.is_none() && self.unusable().is_none()
    }

    /// How old it is.
    pub fn age(&self) -> Option<Duration> {
        self.read_at.map(|read| crate::clock::between(read, self.store_time))
    }

    /// The row of a job.
    pub fn row(&self, job: &str) -> Option<&Arc<BoardRow>> {
        let place = self.rows.binary_search_by(|row| row.view.job.as_str().cmp(job)).ok()?;
        self.rows.get(place)
    }
}
