//! The end of a slot and what is read of it: `close`, `inspect`, `purge`.

use chrono::{DateTime, Utc};

use crate::clock::between;
use crate::job::NodeName;
use crate::slot::{Attempt, Mark, OutputTail, RunRecord, Slot, SlotRecord, Token, Verdict, VerdictRecord};
use crate::store::Closing;
use crate::store::memory::ledger::{Ledger, Placed, Standing};

/// The most slots that one [`Ledger::purge`] removes.
const PURGE_AT_ONCE: usize = 1_000;

impl Ledger {
    /// Records the verdict of a slot that is over, once ([`crate::store::Store::close`]). Checked in this order: not over,
    /// recorded before, still running.
    pub fn close(&mut self, slot: &Slot, max_attempts: u32, by: &NodeName, now: DateTime<Utc>) -> Closing {
        if now < slot.end() {
            return Closing::Open { remaining: between(now, slot.end()) };
        }
        if let Some(record) = &self.log(slot, now).verdict {
            return Closing::Already(record.verdict);
        }
        let mark = self.mark(slot, now);
        if let Some((placed, (by, _))) = mark.and_then(|placed| Some((placed, placed.lease()?))) {
            return Closing::Running { by: by.clone(), remaining: placed.remaining(now) };
        }
        let verdict = self.verdict(slot, max_attempts, now);
        self.log_mut(slot, now).verdict = Some(VerdictRecord { verdict, by: by.clone(), at: now, attempt: 0 });
        Closing::First(verdict)
    }

    fn verdict(&self, slot: &Slot, max_attempts: u32, now: DateTime<Utc>) -> Verdict {
        let log = self.log(slot, now);
        let paused = || self.pauses.get(slot.job()).is_some_and(|pause| pause.touches(slot.start(), slot.end()));
        match self.mark(slot, now) {
            Some(Placed { standing: Standing::Done { .. }, .. }) => Verdict::Done,
            _ if log.used() >= max_attempts => Verdict::Failed,
            _ if log.known() == 0 && paused() => Verdict::Skipped,
            _ => Verdict::Missed,
        }
    }

    /// What is known of each slot, in the order asked ([`crate::store::Store::inspect`]).
    pub fn inspect(&self, slots: &[Slot], now: DateTime<Utc>) -> Vec<SlotRecord> {
        slots.iter().map(|slot| self.record(slot, now)).collect()
    }

    /// The end of the output of one run ([`crate::store::Store::output`]).
    pub fn output(&self, slot: &Slot, attempt: Attempt, token: Token, now: DateTime<Utc>) -> Option<OutputTail> {
        self.log(slot, now).run(attempt, token)?.output.clone()
    }

    fn record(&self, slot: &Slot, now: DateTime<Utc>) -> SlotRecord {
        let log = self.log(slot, now);
        SlotRecord {
            slot: slot.clone(),
            attempts: log.known(),
            forgiven: log.forgiven,
            mark: self.mark(slot, now).map_or(Mark::Free, |placed| placed.shown(now)),
            verdict: log.verdict.clone(),
            runs: log.runs.iter().map(|run| RunRecord { output: None, ..run.clone() }).collect(),
            audit: log.audit.clone(),
        }
    }

    /// Removes what was kept for its time ([`crate::store::Store::purge`]).
    pub fn purge(&mut self, now: DateTime<Utc>) -> u64 {
        self.marks.retain(|_, placed| placed.until > now);
        self.leased.retain(|id| self.marks.contains_key(id));
        self.purge_notes(now);
        let over = |(id, log)| self.is_over(log, now).then_some(id);
        let ids: Vec<_> = self.logs.iter().filter_map(over).take(PURGE_AT_ONCE).cloned().collect();
        for id in &ids {
            self.logs.remove(id);
        }
        u64::try_from(ids.len()).unwrap_or(u64::MAX)
    }
}
