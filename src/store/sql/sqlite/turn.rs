//! Writes to slots, in turns: whoever waits when the lock is free shares one transaction, and so one wait for the disk.
//!
//! A thousand jobs that are due in one second would otherwise wait for a thousand syncs, one after the other. Each call
//! still is a step of its own: it sees what the ones before it in the transaction have done, as if they had committed,
//! and none is answered before the commit. A call that cannot be done does not concern the others.
//!
//! A turn is never left half-way: a caller that gives up is either withdrawn before its turn, or its outcome is unknown.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::{mpsc, oneshot};

use super::fault::{is_busy, meaning};
use super::lane::{OWN, Shared, Tx};
use crate::store::rules::SlotStep;
use crate::store::sql::fault::SqlFault;
use crate::store::sql::session::{Session as _, Value, values};
use crate::store::sql::slots::{self, Scope, SlotWrite};
use crate::store::state::SlotQuery;
use crate::store::{Applied, Wake};

/// The most calls of one turn: other processes wait meanwhile.
const AT_ONCE: usize = 32;

/// Calls that wait for their turn before the next one waits for room.
pub(super) const QUEUE: usize = 1_024;

/// Why a call failed, and whether it was applied all the same.
pub(super) type Failed = (SqlFault, Applied);

/// A call's rule with its answer's type erased.
trait Work: Send {
    /// Applies the rule. Called again when a shared transaction was rolled back.
    fn decide(&mut self, step: &mut SlotStep);
    /// Answers the caller.
    fn end(self: Box<Self>, end: Result<(), Failed>);
}

struct Typed<R, T> {
    rule: R,
    answer: Option<T>,
    reply: oneshot::Sender<Result<T, Failed>>,
}

impl<R: Fn(&mut SlotStep) -> T + Send, T: Send> Work for Typed<R, T> {
    fn decide(&mut self, step: &mut SlotStep) {
        self.answer = Some((self.rule)(step));
    }

    fn end(self: Box<Self>, end: Result<(), Failed>) {
        // A call without an answer drops the sender, which its caller notices.
        let Self { answer, reply, .. } = *self;
        if let Some(end) = end.map(|()| answer).transpose() {
            // A caller that is gone has given up.
            let _ = reply.send(end);
        }
    }
}

/// A call that waits for its turn.
pub(super) struct Job {
    query: SlotQuery,
    work: Box<dyn Work>,
    stage: Arc<AtomicU8>,
    refused: Option<SqlFault>,
    wake: Option<Wake>,
}

const WAITING: u8 = 0;
const TAKEN: u8 = 1;
const WITHDRAWN: u8 = 2;

/// The caller's end of a [`Job`]. Dropped before the job's turn, it withdraws the job.
pub(super) struct Ticket<T> {
    pub(super) reply: oneshot::Receiver<Result<T, Failed>>,
    stage: Arc<AtomicU8>,
}

impl<T> Ticket<T> {
    /// Gives up. `No` when the job had not been begun, and never will be.
    pub(super) fn withdraw(&self) -> Applied {
        match self.stage.compare_exchange(WAITING, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) | Err(WITHDRAWN) => Applied::No,
            Err(_) => Applied::Maybe,
        }
    }
}

impl<T> Drop for Ticket<T> {
    fn drop(&mut self) {
        self.withdraw();
    }
}

impl Job {
    /// One rule on one slot.
    pub(super) fn new<T: Send + 'static>(
        query: SlotQuery,
        rule: impl Fn(&mut SlotStep) -> T + Send + 'static,
    ) -> (Self, Ticket<T>) {
        let (sender, reply) = oneshot::channel();
        let stage = Arc::new(AtomicU8::new(WAITING));
        let work = Box::new(Typed { rule, answer: None, reply: sender });
        (Self { query, work, stage: Arc::clone(&stage), refused: None, wake: None }, Ticket { reply, stage })
    }

    /// From now on it is done, unless it was withdrawn before.
    fn take(&self) -> bool {
        let _ = self.stage.compare_exchange(WAITING, TAKEN, Ordering::AcqRel, Ordering::Acquire);
        self.stage.load(Ordering::Acquire) == TAKEN
    }

    /// Read, decide, write. A row that cannot be read is this call's alone: nothing of it was written.
    async fn step(&mut self, tx: &mut Tx<'_>, shared: &Shared) -> Result<(), SqlFault> {
        // What an earlier transaction left, if that was rolled back.
        (self.refused, self.wake) = (None, None);
        let loaded = match slots::load(tx, &shared.scope, &self.query).await {
            Ok(loaded) => loaded,
            Err(fault @ SqlFault::Row(_)) => {
                self.refused = Some(fault);
                return Ok(());
            }
            Err(fault) => return Err(fault),
        };
        let mut step = loaded.step();
        self.work.decide(&mut step);
        let write = loaded.write(step);
        self.wake.clone_from(&write.change.wake);
        save(tx, &shared.scope, &write).await
    }

    fn end(self, shared: &Shared, end: Result<(), Failed>) {
        if let (Ok(()), Some(wake)) = (&end, self.wake) {
            shared.wakes.tell(wake);
        }
        self.work.end(end.and(self.refused.map_or(Ok(()), |fault| Err((fault, Applied::No)))));
    }
}

/// Takes turns until the store is dropped.
pub(super) async fn run(shared: Arc<Shared>, mut queue: mpsc::Receiver<Job>) {
    while let Some(first) = queue.recv().await {
        let mut turn = vec![first];
        match write(&shared, &mut turn, || queue.try_recv().ok()).await {
            // It was one of them, or the disk: alone, each is told its own.
            Err((_, Applied::No)) if turn.len() > 1 => {
                for job in turn {
                    let mut alone = vec![job];
                    let outcome = write(&shared, &mut alone, || None).await;
                    end(&shared, alone, outcome);
                }
            }
            outcome => end(&shared, turn, outcome),
        }
    }
}

/// One transaction for all of `turn`, and for those that wait when the lock is there.
async fn write(shared: &Shared, turn: &mut Vec<Job>, more: impl FnMut() -> Option<Job>) -> Result<(), Failed> {
    let not_applied = |fault: SqlFault| {
        shared.writer.doubt(&fault);
        (fault, Applied::No)
    };
    let mut lane = shared.writer.hold(&shared.connector).await.map_err(not_applied)?;
    let mut tx = lane.write().await.map_err(not_applied)?;
    turn.extend(std::iter::from_fn(more).take(AT_ONCE - 1));
    turn.retain(Job::take);
    if turn.len() > 1 {
        // Nobody is judged by a time before its call.
        tx.look().await.map_err(not_applied)?;
    }
    for job in turn.iter_mut() {
        job.step(&mut tx, shared).await.map_err(not_applied)?;
    }
    tx.commit().await.map_err(|fault| {
        shared.writer.doubt(&fault);
        let applied = if is_busy(&fault) { Applied::No } else { Applied::Maybe };
        (fault, applied)
    })
}

fn end(shared: &Shared, turn: Vec<Job>, outcome: Result<(), Failed>) {
    let mut outcome = outcome;
    for job in turn {
        // The first is told the cause itself, the others its words.
        let same = match &outcome {
            Ok(()) => Ok(()),
            Err((fault, applied)) => Err((fault.retold(meaning), *applied)),
        };
        job.end(shared, std::mem::replace(&mut outcome, same));
    }
}

/// Writes what a rule has changed. The transaction holds the write lock since before the slot was read, so nothing is
/// overwritten.
async fn save(tx: &mut Tx<'_>, scope: &Scope, write: &SlotWrite) -> Result<(), SqlFault> {
    if write.change.is_none() {
        return Ok(());
    }
    let id = write.slot(scope);
    if write.change.forgets {
        tx.execute(OWN.outputs_forget, id.clone()).await?;
    }
    tx.execute(OWN.slot_save, write.row(scope)?).await?;
    if let Some(latest) = write.latest()? {
        tx.execute(OWN.latest_save, [write.job(scope), values![write.now, latest]].concat()).await?;
    }
    match write.output(usize::MAX)?.as_deref() {
        Some([attempt, token, Value::Text(None)]) => {
            let named = [id, vec![attempt.clone(), token.clone()]].concat();
            tx.execute(OWN.output_remove, named).await?;
        }
        Some(output) => {
            tx.execute(OWN.output_save, [&id, output].concat()).await?;
        }
        None => {}
    }
    Ok(())
}
