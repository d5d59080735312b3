//! What is read of slots, and how one is closed: on what all masters know together.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::RedlockStore;
use super::masters::Heard;
use crate::clock::between;
use crate::job::NodeName;
use crate::slot::{Mark, Slot, SlotRecord, Verdict, VerdictRecord};
use crate::store::redis::RedisStore;
use crate::store::redlock::{median, records};
use crate::store::{Applied, Closing, ErrorKind, Op, Pause, Store, StoreError};

impl RedlockStore {
    pub(super) async fn inspect_slots(&self, slots: &[Slot]) -> Result<(DateTime<Utc>, Vec<SlotRecord>), StoreError> {
        let asked: Arc<[Slot]> = slots.into();
        let call = |master: Arc<RedisStore>| {
            let asked = Arc::clone(&asked);
            async move { master.inspect(&asked).await }
        };
        let mut heard = self.masters.ask(call).await;
        let now = median(heard.answers().map(|(now, _)| *now));
        let mut merged = Vec::with_capacity(slots.len());
        for _ in slots {
            // One slot at a time, from the last: each master's record of it.
            let records: Vec<Option<SlotRecord>> =
                heard.said.iter_mut().map(|said| said.as_mut().and_then(|(_, records)| records.pop())).collect();
            merged.extend(records::merge(self.masters.quorum, &records));
        }
        merged.reverse();
        let enough = heard.answers().count() >= self.masters.quorum.majority() && merged.len() == slots.len();
        let answer = now.filter(|_| enough).map(|now| (now, merged));
        self.settled(Op::Inspect, heard, answer)
    }

    pub(super) async fn inspect_one(&self, slot: &Slot) -> Result<(DateTime<Utc>, SlotRecord), StoreError> {
        let (now, records) = self.inspect_slots(std::slice::from_ref(slot)).await?;
        let untouched = || SlotRecord::untouched(slot.clone());
        Ok((now, records.into_iter().next().unwrap_or_else(untouched)))
    }

    pub(super) async fn close_slot(
        &self,
        slot: &Slot,
        max_attempts: u32,
        by: &NodeName,
    ) -> Result<Closing, StoreError> {
        // Nothing has changed yet, whatever a read comes to.
        let reading = |error: StoreError| StoreError { op: Op::Close, applied: Applied::No, ..error };
        let (now, record) = self.inspect_one(slot).await.map_err(reading)?;
        if now < slot.end() {
            return Ok(Closing::Open { remaining: between(now, slot.end()) });
        }
        if let Some(record) = &record.verdict {
            return Ok(Closing::Already(record.verdict));
        }
        if let Mark::Leased { by, remaining, .. } = &record.mark {
            return Ok(Closing::Running { by: by.clone(), remaining: *remaining });
        }
        let pause = if record.attempts == 0 { self.pause_of(slot).await.map_err(reading)? } else { None };
        self.conclude(slot, verdict(&record, max_attempts, pause.as_ref()), by).await
    }

    async fn pause_of(&self, slot: &Slot) -> Result<Option<Pause>, StoreError> {
        let pauses = self.all_pauses().await?;
        Ok(pauses.into_iter().find(|(job, _)| job == slot.job()).map(|(_, pause)| pause))
    }

    pub(super) async fn all_pauses(&self) -> Result<Vec<(crate::job::JobName, Pause)>, StoreError> {
        let heard = self.masters.ask(|master: Arc<RedisStore>| async move { master.pauses().await }).await;
        let answer = (heard.answers().count() >= self.masters.quorum.majority()).then(|| records::pauses(&heard.said));
        self.settled(Op::Pauses, heard, answer)
    }

    /// The first master that answers decides whose verdict it is, and the others are told: nodes that ask at the same time go
    /// to the same one first, so one of them alone tells.
    async fn conclude(&self, slot: &Slot, verdict: Verdict, by: &NodeName) -> Result<Closing, StoreError> {
        let said = Arc::new((slot.clone(), by.clone()));
        let call = |master: Arc<RedisStore>| {
            let said = Arc::clone(&said);
            async move { master.conclude(&said.0, verdict, &said.1).await }
        };
        for index in 0..self.masters.all.len() {
            let (_, answer) = self.masters.send(index, &call).await;
            match answer {
                Ok((true, record)) => return Ok(Closing::Already(record.verdict)),
                Ok((false, _)) => break,
                Err(_) => {}
            }
        }
        let heard = self.masters.ask(call).await;
        self.concluded(heard, by)
    }

    fn concluded(&self, heard: Heard<(bool, VerdictRecord)>, by: &NodeName) -> Result<Closing, StoreError> {
        let majority = self.masters.quorum.majority();
        let (own, others): (Vec<_>, Vec<_>) = heard.answers().map(|(_, record)| record).partition(|one| one.by == *by);
        if let Some(first) = own.first().filter(|_| own.len() >= majority) {
            return Ok(Closing::First(first.verdict));
        }
        if let Some(other) = others.first().filter(|_| others.len() >= majority) {
            return Ok(Closing::Already(other.verdict));
        }
        if own.len() + others.len() >= majority {
            let message = "two nodes recorded the verdict at different masters: ask again";
            return Err(StoreError::new(ErrorKind::Unavailable, Applied::Maybe, Op::Close, &self.location, message));
        }
        Err(self.masters.too_few(Op::Close, &self.location, heard))
    }
}

/// The verdict of a slot that is over and that nobody runs, as the contract has it.
fn verdict(record: &SlotRecord, max_attempts: u32, pause: Option<&Pause>) -> Verdict {
    let slot = &record.slot;
    match record.mark {
        Mark::Done(_) => Verdict::Done,
        _ if record.used() >= max_attempts => Verdict::Failed,
        _ if record.attempts == 0 && pause.is_some_and(|pause| pause.touches(slot.start(), slot.end())) => {
            Verdict::Skipped
        }
        _ => Verdict::Missed,
    }
}
