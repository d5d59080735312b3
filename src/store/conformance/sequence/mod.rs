//! Random sequences of operations: a store gives the same answers as the specification, and knows the same afterwards.
//!
//! [`Step`]s are plain data, so that any generator can make and shrink them; `tests/conformance/sequences.rs` uses
//! proptest. Time does not pass in a sequence: what would lapse is made to run out by the probe, in the store and in the
//! ledger alike. What cannot be equal (instants; what is left of a TTL) is compared by plain copies.

mod ask;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::slot::{Lease, Outcome as Ended, Slot};
use crate::store::conformance::bench::{DONE, LEASE, WAIT, audit, ended, node_name};
use crate::store::conformance::sequence::ask::{Answer, Ask, plain_latest, plain_pause, plain_record};
use crate::store::conformance::{Bench, Failure, Setup};
use crate::store::memory::Ledger;
use crate::store::{Claim, ClaimRequest};

/// A claimer: one node, which keeps the last lease that it was granted, for ever if nobody settles it. The last of them asks
/// for slots that are over, too.
pub type Actor = u8;

/// One of a few slots: 0 and 1 are of one job, and 1 may not start while 0 runs; 2 is of another job; 3 has not begun; 4
/// is over.
pub type Place = u8;

/// Actors of a sequence.
const ACTORS: u8 = 3;
/// Slots of a sequence.
const PLACES: u8 = 5;

/// One step of a sequence. Actors and places are taken modulo how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A claim with a fresh token; or with the token of the actor's last claim, as after a lost reply.
    Claim(Actor, Place, bool),
    /// The actor renews its last lease, with a longer TTL or the same.
    Renew(Actor, bool),
    /// The actor's run succeeded.
    Complete(Actor),
    /// The actor's run failed, with a wait or without.
    Fail(Actor, bool),
    /// The actor gives its attempt back.
    GiveBack(Actor),
    /// The last request is delivered once more.
    Again,
    /// The slot is closed as one that has just ended, with this many attempts allowed.
    Close(Place, u8),
    /// An operator's verb.
    Reset(Place),
    /// An operator's verb.
    Unlock(Place),
    /// An operator's verb.
    MarkDone(Place),
    /// An operator's verb, with an end or without.
    Pause(Place, bool),
    /// An operator's verb.
    Resume(Place),
    /// What stands at the slot's key runs out.
    Expire(Place),
    /// The slot's counter is lost.
    ForgetCounter(Place),
    /// Everything is lost.
    Wipe,
}

struct World {
    bench: Bench,
    ledger: Ledger,
    now: DateTime<Utc>,
    slots: Vec<Slot>,
    requests: BTreeMap<Actor, ClaimRequest>,
    leases: BTreeMap<Actor, Lease>,
    last: Option<(Actor, Ask)>,
    asked: u32,
}

/// Whether the store agrees with the specification on every answer of this sequence and on all that is known after each
/// step; tells how many operations that were. The message tells the first difference.
pub async fn agree(setup: Arc<dyn Setup>, namespace: &str, steps: &[Step]) -> Result<u32, String> {
    let told = |failure: Failure| failure.to_string();
    let mut world = World::open(setup, namespace).await.map_err(told)?;
    for (index, step) in steps.iter().enumerate() {
        let taken = world.take(*step).await;
        taken.map_err(|failure| format!("step {index}, {step:?}: {failure}"))?;
    }
    world.compare_counters().await.map_err(told)?;
    world.compare_latest().await.map_err(told)?;
    Ok(world.asked)
}

impl World {
    async fn open(setup: Arc<dyn Setup>, namespace: &str) -> Result<Self, Failure> {
        let bench = Bench::open(setup, namespace).await?;
        let slots = vec![
            bench.span("job", -900, 7_200)?,
            bench.span("job", -600, 7_200)?,
            bench.span("other", -600, 7_200)?,
            bench.span("job", 3_600, 7_200)?,
            bench.span("job", -7_200, -3_600)?,
        ];
        let now = bench.began;
        let ledger = Ledger::new(Duration::from_secs(7 * 86_400));
        let (requests, leases) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { bench, ledger, now, slots, requests, leases, last: None, asked: 0 })
    }

    async fn take(&mut self, step: Step) -> Result<(), Failure> {
        if let Some((actor, ask)) = self.ask(step)? {
            let claims = matches!(ask, Ask::Claim(_));
            self.put(actor, ask).await?;
            if claims {
                self.compare_counters().await?;
            }
        } else {
            self.disturb(step).await?;
        }
        self.compare().await
    }

    fn slot(&self, place: Place) -> Result<Slot, Failure> {
        let slot = self.slots.get(usize::from(place % PLACES)).cloned();
        slot.ok_or_else(|| Failure::from(format!("no slot {place}")))
    }

    /// The operation that a step is; none when it is none, or when the actor has no lease to speak of.
    fn ask(&self, step: Step) -> Result<Option<(Actor, Ask)>, Failure> {
        let lease = |actor: Actor| self.leases.get(&(actor % ACTORS)).cloned().map(Box::new);
        let settled = |actor, outcome| lease(actor).map(|lease| (Box::new(ended(&lease, outcome)), lease));
        let ask = match step {
            Step::Claim(actor, place, again) => Some(Ask::Claim(Box::new(self.request(actor, place, again)?))),
            Step::Renew(actor, longer) => lease(actor).map(|lease| {
                let ttl = if longer { LEASE * 2 } else { LEASE };
                Ask::Renew(Box::new(Lease { ttl, ..*lease }))
            }),
            Step::Complete(actor) => settled(actor, Ended::Success).map(|(run, lease)| Ask::Complete(lease, run, DONE)),
            Step::Fail(actor, waits) => {
                let wait = if waits { WAIT } else { Duration::ZERO };
                settled(actor, Ended::Failure).map(|(run, lease)| Ask::Fail(lease, run, wait))
            }
            Step::GiveBack(actor) => settled(actor, Ended::GivenBack).map(|(run, lease)| Ask::GiveBack(lease, run)),
            Step::Again => return Ok(self.last.clone()),
            other => self.verb(other)?,
        };
        Ok(ask.map(|ask| (step.actor(), ask)))
    }

    fn verb(&self, step: Step) -> Result<Option<Ask>, Failure> {
        Ok(Some(match step {
            Step::Close(place, limit) => {
                Ask::Close(self.over(&self.slot(place)?)?, u32::from(limit % 4), node_name("closer")?)
            }
            Step::Reset(place) => Ask::Reset(self.slot(place)?, audit("reset")),
            Step::Unlock(place) => Ask::Unlock(self.slot(place)?, audit("unlock")),
            Step::MarkDone(place) => Ask::MarkDone(self.slot(place)?, audit("mark_done"), DONE),
            Step::Pause(place, ends) => {
                let until = ends.then(|| self.bench.at(3_600));
                Ask::Pause(self.slot(place)?.job().clone(), until, audit("pause"))
            }
            Step::Resume(place) => Ask::Resume(self.slot(place)?.job().clone(), audit("resume")),
            _ => return Ok(None),
        }))
    }

    /// The same slot as one that ended a minute ago; one that has not begun stays as it is.
    fn over(&self, slot: &Slot) -> Result<Slot, Failure> {
        let end = self.bench.at(-60);
        if slot.start() >= end {
            return Ok(slot.clone());
        }
        Slot::new(slot.job().clone(), slot.start(), end).map_err(|error| Failure::from(error.to_string()))
    }

    fn request(&self, actor: Actor, place: Place, again: bool) -> Result<ClaimRequest, Failure> {
        let actor = actor % ACTORS;
        let slot = self.slot(place)?;
        let fresh = ClaimRequest {
            // Two slots of a job that exclude each other.
            exclusive: place % PLACES <= 1,
            past: actor == 2,
            audit: (actor == 2).then(|| audit("trigger")),
            ..self.bench.request(&slot, &format!("n{actor}"))?
        };
        let repeated = self.requests.get(&actor).filter(|last| again && last.slot == slot);
        Ok(repeated.cloned().unwrap_or(fresh))
    }

    async fn put(&mut self, actor: Actor, ask: Ask) -> Result<(), Failure> {
        let answered = ask.of_store(&*self.bench.store).await?;
        self.asked += 1;
        // Who came later is told by the instants of grants, so the ledger grants at the store's.
        if let Some(Claim::Claimed { at, .. }) = answered.claim {
            self.now = self.now.max(at);
        }
        let right = ask.of_ledger(&mut self.ledger, self.now);
        if right.shown != answered.shown {
            return Err(Failure::from(format!("answered {}, the specification {}", answered.shown, right.shown)));
        }
        self.remember(actor, &ask, &answered);
        self.last = Some((actor, ask));
        Ok(())
    }

    fn remember(&mut self, actor: Actor, ask: &Ask, answer: &Answer) {
        let Ask::Claim(request) = ask else { return };
        self.requests.insert(actor, (**request).clone());
        if let Some(Claim::Claimed { attempt, at, .. }) = answer.claim {
            self.leases.insert(actor, request.granted(attempt, at));
        }
    }

    /// What happens behind the store's back.
    async fn disturb(&mut self, step: Step) -> Result<(), Failure> {
        match step {
            Step::Expire(place) => {
                let slot = self.slot(place)?;
                self.bench.expire(&slot).await?;
                self.ledger.expire_mark(&slot, self.now);
            }
            Step::ForgetCounter(place) => {
                let slot = self.slot(place)?;
                self.bench.probe.forget_counter(&slot).await?;
                self.ledger.forget_counter(&slot);
            }
            Step::Wipe => {
                self.bench.probe.wipe().await?;
                self.ledger.wipe();
            }
            _ => {}
        }
        Ok(())
    }

    /// All that is known of every slot and pause is the same.
    async fn compare(&self) -> Result<(), Failure> {
        let (now, records) = self.bench.store.inspect(&self.slots).await?;
        for (known, right) in records.into_iter().zip(self.ledger.inspect(&self.slots, self.now)) {
            let (known, right) = (plain_record(known), plain_record(right));
            ensure_eq!(known, right);
        }
        let known: Vec<_> = self.bench.store.pauses().await?;
        let known: Vec<_> = known.into_iter().map(|(job, pause)| (job, plain_pause(pause, now))).collect();
        let right = self.ledger.pauses();
        let right: Vec<_> = right.into_iter().map(|(job, pause)| (job, plain_pause(pause, self.now))).collect();
        ensure_eq!(known, right);
        Ok(())
    }

    /// What the jobs have come to lately is the same.
    async fn compare_latest(&self) -> Result<(), Failure> {
        let jobs: Vec<_> = self.slots.iter().map(|slot| slot.job().clone()).collect();
        let known = self.bench.store.latest(&jobs).await?;
        for (known, right) in known.into_iter().zip(self.ledger.latest(&jobs)) {
            ensure_eq!(plain_latest(known), plain_latest(right));
        }
        Ok(())
    }

    /// The counters are the same as they are stored, not only as they are read. But for one that the record of a run from
    /// before the store lost its data has overtaken: it may have been raised to that number, which is read in any case.
    async fn compare_counters(&self) -> Result<(), Failure> {
        for (slot, read) in self.slots.iter().zip(self.ledger.inspect(&self.slots, self.now)) {
            let known = self.bench.probe.attempts(slot).await?.unwrap_or(0);
            let right = self.ledger.counter(slot).unwrap_or(0);
            if !(right > 0 && known == read.attempts) {
                ensure_eq!(known, right, "{slot}");
            }
        }
        Ok(())
    }
}

impl Step {
    const fn actor(self) -> Actor {
        match self {
            Self::Claim(actor, ..)
            | Self::Renew(actor, _)
            | Self::Complete(actor)
            | Self::Fail(actor, _)
            | Self::GiveBack(actor) => actor % ACTORS,
            _ => ACTORS,
        }
    }
}
