//! What changed, as whoever looks is told: written down once, however many look. The newest are kept, so that who lost the connection goes
//! on where it was.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use serde::Serialize;
use tokio::sync::broadcast;

use crate::board::{BoardRow, Concern, HourCell};
use crate::job::{JobName, NodeName};
use crate::slot::SlotState;

/// Changes that one who looks may be behind; beyond that it begins anew.
const BEHIND: usize = 256;
/// Bytes of changes that are kept for who comes back.
const LARGEST: usize = 256 * 1_024;

/// One change. Those of one process are numbered from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Which.
    pub number: u64,
    /// What kind: `rows` (jobs whose row changed, with the cells that changed), `cells` (an hour that was read), `hours` (another hour
    /// began: the columns moved), `jobs` (jobs came or went), `nodes`, `store`, `concerns`.
    pub event: &'static str,
    /// What, in JSON on one line (docs/json.md).
    pub data: Arc<str>,
}

/// Every change of one process.
#[derive(Clone, Debug)]
pub(super) struct Patches(Arc<Told>);

#[derive(Debug)]
struct Told {
    /// Tells this process from the one before.
    boot: String,
    kept: Mutex<PatchHistory>,
    teller: broadcast::Sender<Arc<Patch>>,
}

#[derive(Debug, Default)]
struct PatchHistory {
    number: u64,
    bytes: usize,
    patches: VecDeque<Arc<Patch>>,
}

impl Patches {
    pub(super) fn new(boot: String) -> Self {
        let (teller, _) = broadcast::channel(BEHIND);
        Self(Arc::new(Told { boot, kept: Mutex::default(), teller }))
    }

    /// Tells a change. One that cannot be written down is none.
    pub(super) fn push(&self, event: &'static str, data: &impl Serialize) {
        let Ok(data) = serde_json::to_string(data) else { return };
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.number += 1;
        let patch = Arc::new(Patch { number: kept.number, event, data: data.into() });
        kept.bytes += patch.data.len();
        kept.patches.push_back(Arc::clone(&patch));
        while kept.patches.len() > BEHIND || kept.bytes > LARGEST {
            let Some(oldest) = kept.patches.pop_front() else { break };
            kept.bytes = kept.bytes.saturating_sub(oldest.data.len());
        }
        // In their order: under the lock. Nobody may be looking just now.
        let _ = self.0.teller.send(patch);
    }

    /// The number of the last one.
    pub(super) fn last(&self) -> u64 {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner).number
    }

    pub(super) fn boot(&self) -> &str {
        &self.0.boot
    }

    /// Nothing is kept any more: nobody looks.
    pub(super) fn forget(&self) {
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        (kept.bytes, kept.patches) = (0, VecDeque::new());
        // What is shown from now on was not told: who comes back begins anew.
        kept.number += 1;
    }

    pub(super) fn viewers(&self) -> usize {
        self.0.teller.receiver_count()
    }

    /// What changes from now on, and what has since that moment (`<boot>-<n>`); none where that is not known any more.
    pub(super) fn after(&self, moment: Option<&str>) -> (broadcast::Receiver<Arc<Patch>>, Option<Vec<Arc<Patch>>>) {
        let kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let receiver = self.0.teller.subscribe();
        let number =
            moment.and_then(|moment| moment.strip_prefix(&*self.0.boot)?.strip_prefix('-')?.parse::<u64>().ok());
        let oldest = kept.patches.front().map_or(kept.number + 1, |oldest| oldest.number);
        let known = number.filter(|number| *number <= kept.number && *number + 1 >= oldest);
        let since = known.map(|number| kept.patches.iter().filter(|patch| patch.number > number).cloned().collect());
        (receiver, since)
    }
}

/// Rows that changed.
#[derive(Debug, Serialize)]
pub(super) struct RowsPatch<'a> {
    /// By the store's clock.
    pub(super) at: DateTime<Utc>,
    pub(super) rows: &'a [RowPatch],
}

/// One row that changed: where it stands now, and the cells that changed.
#[derive(Debug, Serialize)]
pub(super) struct RowPatch {
    job: JobName,
    slot: Option<String>,
    state: Option<SlotState>,
    attempts: u32,
    max_attempts: u32,
    /// Who holds it, or had the last attempt.
    node: Option<NodeName>,
    next_tick: Option<DateTime<Utc>>,
    paused: bool,
    late: bool,
    failing: bool,
    cells: Vec<CellPatch>,
}

#[derive(Debug, Serialize)]
struct CellPatch {
    hour: DateTime<Utc>,
    #[serde(flatten)]
    cell: HourCell,
}

impl RowPatch {
    /// What became of a row; none where nothing that is shown did.
    pub(super) fn between(was: &BoardRow, row: &BoardRow, hours: &[DateTime<Utc>]) -> Option<Self> {
        let changed = hours.iter().zip(row.cells.iter().zip(&was.cells)).filter(|(_, (cell, was))| cell != was);
        let cells: Vec<CellPatch> = changed.map(|(hour, (cell, _))| CellPatch { hour: *hour, cell: *cell }).collect();
        let (now, before) = (Self::of(row), Self::of(was));
        (now.standing() != before.standing() || !cells.is_empty()).then_some(Self { cells, ..now })
    }

    fn of(row: &BoardRow) -> Self {
        let (view, current) = (&row.view, row.view.current.as_ref());
        let holds = current.and_then(|slot| slot.lease.as_ref().map(|lease| &lease.node));
        let ran = current.and_then(|slot| slot.runs.last().map(|run| &run.node));
        Self {
            job: view.job.clone(),
            slot: current.map(|slot| slot.slot.clone()),
            state: current.map(|slot| slot.state),
            attempts: current.map_or(0, |slot| slot.attempts),
            max_attempts: current.map_or(0, |slot| slot.max_attempts),
            node: holds.or(ran).cloned(),
            next_tick: view.next_tick,
            paused: view.paused.is_some(),
            late: row.late,
            failing: view.latest.failing.is_some(),
            cells: Vec::new(),
        }
    }

    fn standing(&self) -> impl PartialEq {
        let now = (self.slot.clone(), self.state, self.attempts, self.max_attempts, self.node.clone());
        (now, self.next_tick, self.paused, self.late, self.failing)
    }
}

/// Cells of an hour that were read.
#[derive(Debug, Serialize)]
pub(super) struct CellsPatch {
    pub(super) at: DateTime<Utc>,
    pub(super) hour: DateTime<Utc>,
    pub(super) cells: BTreeMap<JobName, HourCell>,
    /// Hours that were read.
    pub(super) filled: usize,
}

/// The columns moved.
#[derive(Debug, Serialize)]
pub(super) struct HoursPatch<'a> {
    pub(super) at: DateTime<Utc>,
    pub(super) hours: &'a [DateTime<Utc>],
}

/// Jobs came or went.
#[derive(Debug, Serialize)]
pub(super) struct JobsPatch {
    pub(super) at: DateTime<Utc>,
    pub(super) jobs: usize,
}

/// What needs a person, the first of it.
#[derive(Debug, Serialize)]
pub(super) struct ConcernsPatch<'a> {
    pub(super) at: DateTime<Utc>,
    pub(super) count: usize,
    pub(super) concerns: &'a [Concern],
}
