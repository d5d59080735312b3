//! The verdict of a slot on a majority of masters: one node alone tells of it.

use std::sync::Arc;

use super::RedlockStore;
use super::masters::Heard;
use crate::clock::between;
use crate::error::Reply;
use crate::job::NodeName;
use crate::slot::{Mark, Slot, SlotRecord, Verdict, VerdictRecord};
use crate::store::redis::RedisStore;
use crate::store::{Applied, Closing, ErrorKind, Op, Pause, StoreError};

impl RedlockStore {
    pub(super) async fn close_slot(&self, slot: &Slot, max_attempts: u32, by: &NodeName) -> Reply<Closing> {
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
        let pause = if record.attempts == 0 { self.last_pause(slot).await.map_err(reading)? } else { None };
        self.conclude(slot, verdict(&record, max_attempts, pause.as_ref()), by).await
    }

    async fn last_pause(&self, slot: &Slot) -> Reply<Option<Pause>> {
        let pauses = self.all_pauses().await?;
        Ok(pauses.into_iter().find(|(job, _)| job == slot.job()).map(|(_, pause)| pause))
    }

    /// The first master that answers decides whose verdict it is, and the others are told: nodes that ask at the same time go
    /// to the same one first, so one of them alone tells.
    async fn conclude(&self, slot: &Slot, verdict: Verdict, by: &NodeName) -> Reply<Closing> {
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

    fn concluded(&self, heard: Heard<(bool, VerdictRecord)>, by: &NodeName) -> Reply<Closing> {
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
