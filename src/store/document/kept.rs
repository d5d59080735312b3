//! All that is kept of one slot: from it to the image that a rule works on, and from the image to what is written.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::mark::MarkChange;
use crate::clock::later;
use crate::slot::{
    Attempt, Audit, Lease, Mark, OutputTail, RunRecord, Slot, SlotKey, SlotRecord, Token, VerdictRecord,
};
use crate::store::image::{Effects, Image, Row, Runs, StoredMark};
use crate::store::{Pause, Wake};

/// Which slots are looked at, and which of their runs counts as the request's own.
#[derive(Clone, Debug)]
pub(in crate::store) struct Subject {
    pub(in crate::store) slot: Slot,
    /// The lease's token; none for the current lease's.
    pub(in crate::store) token: Option<Token>,
    /// The lease's attempt; none for the token's newest, or the current lease's.
    pub(in crate::store) attempt: Option<Attempt>,
    /// Whether the leases of the job's other slots count.
    pub(in crate::store) exclusive: bool,
    /// Whether the job's pause counts.
    pub(in crate::store) pause: bool,
}

impl Subject {
    pub(in crate::store) fn slot(slot: &Slot) -> Self {
        Self { slot: slot.clone(), token: None, attempt: None, exclusive: false, pause: false }
    }

    pub(in crate::store) fn lease(lease: &Lease) -> Self {
        Self { token: Some(lease.token), attempt: Some(lease.attempt), ..Self::slot(&lease.slot) }
    }
}

/// What is kept of a slot besides its mark, its counter and its outputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct Document {
    /// The last change, or the slot's end where that is later: the retention begins here.
    #[serde(rename = "touched_ms", with = "chrono::serde::ts_milliseconds")]
    pub(in crate::store) touched: DateTime<Utc>,
    #[serde(default)]
    forgiven: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verdict: Option<VerdictRecord>,
    /// Without their outputs; by attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    runs: Vec<RunRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    audit: Vec<Audit>,
}

/// All that is kept of a slot, as it was read.
#[derive(Clone, Debug)]
pub(in crate::store) struct Kept {
    pub(in crate::store) slot: Slot,
    pub(in crate::store) mark: Option<StoredMark>,
    pub(in crate::store) counter: Attempt,
    pub(in crate::store) document: Option<Document>,
}

/// Time, for a slot that is read.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct Moment {
    pub(in crate::store) now: DateTime<Utc>,
    pub(in crate::store) retention: Duration,
}

/// What becomes of one run's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) struct OutputChange {
    pub(in crate::store) attempt: Attempt,
    pub(in crate::store) token: Token,
    /// None: there is none any more.
    pub(in crate::store) output: Option<OutputTail>,
}

/// What has to be written, all of it in one step.
#[derive(Clone, Debug)]
pub(in crate::store) struct Change {
    pub(in crate::store) mark: MarkChange,
    /// What the counter becomes; zero is none.
    pub(in crate::store) counter: Option<Attempt>,
    pub(in crate::store) document: Option<Document>,
    pub(in crate::store) output: Option<OutputChange>,
    /// The outputs that are there belong to what was kept for its time.
    pub(in crate::store) forgets_outputs: bool,
    /// What is told once it is written.
    pub(in crate::store) wake: Option<Wake>,
}

impl Kept {
    /// The document, unless it was kept for its time.
    fn current(&self, at: Moment) -> Option<&Document> {
        self.document.as_ref().filter(|document| later(document.touched, at.retention) > at.now)
    }

    fn is_outdated(&self, at: Moment) -> bool {
        self.document.is_some() && self.current(at).is_none()
    }

    fn row(&self, at: Moment) -> Row {
        let mark = self.mark.clone();
        if self.is_outdated(at) {
            // The mark has its own time.
            return Row { mark, ..Row::default() };
        }
        let (forgiven, verdict) =
            self.document.as_ref().map_or((0, None), |document| (document.forgiven, document.verdict.clone()));
        Row { counter: self.counter, forgiven, mark, verdict }
    }

    /// What a rule needs to know.
    pub(in crate::store) fn image(
        &self,
        subject: &Subject,
        at: Moment,
        pause: Option<Pause>,
        others: Vec<(SlotKey, StoredMark)>,
    ) -> Image {
        let recorded = self.current(at).map_or(&[][..], |document| &document.runs);
        let runs = runs(recorded, subject, self.mark.as_ref());
        let (slot, effects) = (self.slot.clone(), Effects::default());
        Image { slot, now: at.now, row: self.row(at), runs, pause, others, effects }
    }

    /// What the rule has changed.
    pub(in crate::store) fn change(&self, image: Image, at: Moment) -> Change {
        let Image { slot, now, row, effects, .. } = image;
        let before = self.row(at);
        let Effects { run, audit, wake } = effects;
        let recorded = run.is_some() || audit.is_some();
        let log = |row: &Row| (row.counter, row.forgiven, row.verdict.clone());
        let touched = recorded || log(&row) != log(&before);
        let renews = touched && self.is_outdated(at);
        let mut output = None;
        let document = touched.then(|| {
            let base = self.current(at);
            let mut document = Document {
                touched: now.max(slot.end()),
                forgiven: row.forgiven,
                verdict: row.verdict.clone(),
                runs: base.map_or_else(Vec::new, |document| document.runs.clone()),
                audit: base.map_or_else(Vec::new, |document| document.audit.clone()),
            };
            output = run.and_then(|run| document.write(run));
            document.audit.extend(audit);
            document
        });
        Change {
            mark: MarkChange::between(before.mark.as_ref(), row.mark.as_ref()),
            counter: (renews || row.counter != before.counter).then_some(row.counter),
            document,
            output,
            forgets_outputs: renews,
            wake: wake.map(|what| Wake::Slot { job: slot.job().clone(), key: slot.key(), what }),
        }
    }

    /// What is known of the slot but for the outputs.
    pub(in crate::store) fn record(self, at: Moment) -> SlotRecord {
        let standing = self.mark.as_ref().filter(|mark| mark.until > at.now);
        let mark = standing.map_or(Mark::Free, |mark| mark.shown(at.now));
        let outdated = self.is_outdated(at);
        let Self { slot, counter, document, .. } = self;
        let Some(document) = document.filter(|_| !outdated) else {
            let attempts = if outdated { 0 } else { counter };
            return SlotRecord { mark, attempts, ..SlotRecord::untouched(slot) };
        };
        let Document { forgiven, verdict, runs, audit, .. } = document;
        let attempts = runs.iter().map(|run| run.attempt).fold(counter, Attempt::max);
        SlotRecord { slot, attempts, forgiven, mark, verdict, runs, audit }
    }
}

impl Document {
    /// Writes a run's record; answers what becomes of its output, if anything.
    fn write(&mut self, mut run: RunRecord) -> Option<OutputChange> {
        let output = run.output.take();
        let same = |old: &&mut RunRecord| old.attempt == run.attempt && old.token == run.token;
        match self.runs.iter_mut().find(same) {
            // A record that was kept as it is keeps its output.
            Some(old) if *old == run && output.is_none() => return None,
            Some(old) => *old = run.clone(),
            None => self.runs.push(run.clone()),
        }
        self.runs.sort_by_key(|run| (run.attempt, run.claimed_at, run.token));
        Some(OutputChange { attempt: run.attempt, token: run.token, output })
    }
}

fn runs(recorded: &[RunRecord], subject: &Subject, mark: Option<&StoredMark>) -> Runs {
    let held = mark.map(|mark| (mark.by.attempt, mark.token()));
    let attempt = if subject.token.is_some() { subject.attempt } else { held.map(|(attempt, _)| attempt) };
    let token = subject.token.or(held.and_then(|(_, token)| token));
    let is_own = |run: &&RunRecord| Some(run.token) == token && attempt.is_none_or(|attempt| attempt == run.attempt);
    let is_other = |run: &&RunRecord| subject.token.is_some_and(|token| token != run.token);
    // Of one number granted twice the last counts.
    let other = recorded.iter().filter(is_other).max_by_key(|run| run.attempt);
    let latest = recorded.iter().filter(is_other).filter(|run| run.attempt > 0);
    Runs {
        own: recorded.iter().filter(is_own).max_by_key(|run| run.attempt).cloned(),
        newest: recorded.iter().map(|run| run.attempt).max().unwrap_or(0),
        newest_other: other.map_or(0, |run| run.attempt),
        newest_other_node: other.map(|run| run.node.clone()),
        latest_other: latest.max_by_key(|run| (run.claimed_at, run.attempt)).cloned(),
        spent: recorded.iter().any(|run| Some(run.token) == subject.token && run.outcome.is_some()),
    }
}
