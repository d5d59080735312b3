//! The store of a world: the executable specification, beside it a shadow of every slot, and what can happen to both.
//!
//! Each request is answered by the ledger and by the shadow; where they differ, a promise is broken. Which one follows from
//! what was answered instead of what.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use cronward::job::{LockName, NodeName};
use cronward::node::Looked;
use cronward::resource::{AcquireRequest, Demand, Demands, LockHold};
use cronward::slot::{Mark, Slot, Token};
use cronward::store::memory::Ledger;
use cronward::store::{
    Claim, ClaimRequest, Closing, NodeEntry, NodeReport, Release, Renewal, Settlement, Wake, handover,
};

use crate::checks::Bug;
use crate::checks::{self, Broken, Check};
use crate::message::{Answer, Ask, Request};
use crate::shadow::{Shadow, Standing};

/// A slot's identity: which job, and the start in seconds.
pub(super) type SlotId = (usize, i64);

/// No world lasts as long.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Ledger and shadows; cloning both is a snapshot.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) ledger: Ledger,
    pub(super) shadows: BTreeMap<SlotId, Shadow>,
}

/// A grant that is new.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewGrant {
    /// The lease that had lapsed before, though its run was not settled.
    pub(super) lapsed: Option<Standing>,
    /// Since when the slot had been free.
    pub(super) free_since: Option<DateTime<Utc>>,
    /// The attempt whose failure was reported last.
    pub(super) failed: Option<Token>,
}

/// What came of a request.
#[derive(Debug, Default)]
pub(super) struct Processed {
    pub(super) answer: Option<Answer>,
    pub(super) grant: Option<NewGrant>,
    /// A lease that had lapsed and was set again by its holder.
    pub(super) restored: Option<Standing>,
    pub(super) wakes: Vec<Wake>,
    /// Hints on locks: to which process, and which of its requests.
    pub(super) lock_wakes: Vec<(Token, Token)>,
    pub(super) broken: Option<Broken>,
}

/// The store.
#[derive(Debug)]
pub(super) struct Backend {
    pub(super) kept: Kept,
    /// What a replica has.
    pub(super) replica: Option<Kept>,
    /// Data was lost so often.
    pub(super) losses: u32,
    pub(super) lost_at: Option<DateTime<Utc>>,
    pub(super) bug: Option<Bug>,
    /// Another namespace of the same store, where another cluster has jobs of the same names.
    strangers: Ledger,
    retention: Duration,
}

impl Backend {
    pub(super) fn new(retention: Duration, bug: Option<Bug>) -> Self {
        let keeps = if bug == Some(Bug::CounterWithoutTtl) { FOR_EVER } else { retention };
        let kept = Kept { ledger: Ledger::new(keeps), shadows: BTreeMap::new() };
        Self { kept, replica: None, losses: 0, lost_at: None, bug, strangers: Ledger::new(retention), retention }
    }

    /// Everything is gone.
    pub(super) fn wipe(&mut self, now: DateTime<Utc>) {
        self.kept.ledger.wipe();
        self.kept.shadows.clear();
        self.lost(now);
    }

    /// The replica has all that was written until now.
    pub(super) fn replicate(&mut self) {
        self.replica = Some(self.kept.clone());
    }

    /// The replica takes over; what it had not yet is lost.
    pub(super) fn fail_over(&mut self, now: DateTime<Utc>) {
        if let Some(replica) = self.replica.take() {
            self.kept = replica;
            drop(self.kept.ledger.take_wakes());
            self.lost(now);
        }
    }

    fn lost(&mut self, now: DateTime<Utc>) {
        self.losses += 1;
        self.lost_at = Some(now);
    }

    /// Carries a request out. `id` is its slot.
    pub(super) fn process(
        &mut self,
        request: &Request,
        id: Option<SlotId>,
        now: DateTime<Utc>,
        by: &NodeName,
    ) -> Processed {
        let mut done = Processed::default();
        match (&request.ask, id) {
            (Ask::Heartbeat { report, looks }, _) => {
                let looked = looks.then(|| look(&self.kept.ledger.nodes(now), report, now));
                done.answer = Some(Answer::Heartbeat(self.kept.ledger.heartbeat(report, now), looked));
            }
            (Ask::Inspect(slots), _) => done.answer = Some(Answer::Records(self.kept.ledger.inspect(slots, now))),
            (Ask::Nodes, _) => done.answer = Some(Answer::Nodes(now, self.kept.ledger.nodes(now))),
            (Ask::Register(jobs), _) => done.answer = Some(Answer::Jobs(self.kept.ledger.register(jobs, now))),
            (Ask::Acquire(_) | Ask::RenewLock(_) | Ask::Release(_) | Ask::Pauses, _) => {
                done.answer = self.on_locks(&request.ask, now);
            }
            (Ask::Claim(claim), Some(id)) => self.claim(claim, id, (now, request.shown), &mut done),
            (Ask::Close { slot, max_attempts }, Some(id)) => {
                let answer = match self.kept.ledger.close(slot, *max_attempts, by, now) {
                    Closing::Already(verdict) if self.bug == Some(Bug::ClosedAgain) => Closing::First(verdict),
                    answer => answer,
                };
                let expected = self.shadow(id).close(slot, *max_attempts, now);
                let verdict = self.shadow(id).verdict;
                done.broken = checks::close(&answer, expected, verdict);
                done.answer = Some(Answer::Closing(answer));
            }
            (_, Some(id)) => self.settle(&request.ask, id, now, &mut done),
            (_, None) => {}
        }
        if done.broken.is_none()
            && let (Some(slot), Some(id)) = (request.ask.slot(), id)
        {
            done.broken = self.compare(slot, id, now);
        }
        done.wakes = self.kept.ledger.take_wakes();
        done.lock_wakes = self.kept.ledger.take_lock_wakes();
        done
    }

    fn on_locks(&mut self, ask: &Ask, now: DateTime<Utc>) -> Option<Answer> {
        let shares = self.bug == Some(Bug::ExclusiveAdmitsTwo);
        let ledger = &mut self.kept.ledger;
        match ask {
            Ask::Acquire(request) if shares => {
                let demands = shared(&request.demands);
                Some(Answer::Acquired(ledger.acquire(&AcquireRequest { demands, ..request.clone() }, now)))
            }
            Ask::RenewLock(hold) if shares => {
                let demands = shared(&hold.demands);
                Some(Answer::LockRenewal(ledger.renew_lock(&LockHold { demands, ..hold.clone() }, now)))
            }
            Ask::Acquire(request) => Some(Answer::Acquired(ledger.acquire(request, now))),
            Ask::RenewLock(hold) => Some(Answer::LockRenewal(ledger.renew_lock(hold, now))),
            Ask::Release(exit) => Some(Answer::LockRelease(ledger.release(exit, now))),
            Ask::Pauses => {
                let paused = ledger.pauses().into_iter().filter(|(_, pause)| pause.remaining(now).is_some());
                Some(Answer::Pauses(paused.map(|(job, _)| job).collect()))
            }
            _ => None,
        }
    }

    /// Whether the store lets a request hold a lock.
    pub(super) fn lets_hold(&self, lock: &LockName, token: Token, now: DateTime<Utc>) -> bool {
        let records = self.kept.ledger.lock_records(std::slice::from_ref(lock), now);
        records.iter().flat_map(|record| record.holders()).any(|entry| entry.token == token)
    }

    fn shadow(&mut self, id: SlotId) -> &mut Shadow {
        self.kept.shadows.entry(id).or_default()
    }

    fn claim(
        &mut self,
        request: &ClaimRequest,
        id: SlotId,
        (now, shown): (DateTime<Utc>, DateTime<Utc>),
        done: &mut Processed,
    ) {
        let blocked = request.exclusive && self.others(id).any(|(_, shadow)| shadow.lease_at(now).is_some());
        let expected = self.shadow(id).claim(request, now, blocked);
        // Both readings of the protocol have this one: only what comes of it shows it.
        let closed = self.bug == Some(Bug::ClosedBeforeItsOwnToken) && now >= request.slot.end() && !request.past;
        if closed && expected == "claimed" {
            done.answer = Some(Answer::Claim(Claim::Closed));
            return;
        }
        let answer = self.ask_ledger(request, now, shown);
        let shadow = self.shadow(id);
        let own = shadow.lease_at(now).filter(|lease| lease.token == request.token).map(|lease| lease.attempt);
        let own = own.or_else(|| shadow.found_again(request.token, now));
        done.broken = checks::claim(&answer, expected, shadow, own);
        if let Claim::Claimed { attempt, .. } = &answer {
            let lapsed =
                shadow.lease.filter(|lease| lease.until <= now && !shadow.has_ended(lease.attempt, lease.token));
            let (free_since, failed) = (shadow.free_since(now, u32::MAX), shadow.failed);
            if shadow.granted(request, *attempt, now) {
                done.grant = Some(NewGrant { lapsed, free_since, failed });
            }
        }
        done.answer = Some(Answer::Claim(answer));
    }

    /// What is known of the job's other slots.
    pub(super) fn others(&self, id: SlotId) -> impl Iterator<Item = (&SlotId, &Shadow)> {
        self.kept.shadows.range((id.0, i64::MIN)..=(id.0, i64::MAX)).filter(move |(other, _)| **other != id)
    }

    fn ask_ledger(&mut self, request: &ClaimRequest, now: DateTime<Utc>, shown: DateTime<Utc>) -> Claim {
        let ledger = &mut self.kept.ledger;
        let stands = ledger.mark_ttl(&request.slot, now).is_some();
        match self.bug {
            Some(bug @ (Bug::TokenIgnored | Bug::HeldIgnored)) if stands => {
                let records = ledger.inspect(std::slice::from_ref(&request.slot), now);
                let holder = records.iter().find_map(|record| match &record.mark {
                    Mark::Leased { token, .. } => Some(*token),
                    _ => None,
                });
                let mut asked = request.clone();
                let own = holder == Some(request.token);
                if own && bug == Bug::TokenIgnored {
                    asked.token = asked.token.next();
                    ledger.expire_mark(&request.slot, now);
                } else if !own && holder.is_some() && bug == Bug::HeldIgnored {
                    ledger.expire_mark(&request.slot, now);
                }
                ledger.claim(&asked, now)
            }
            Some(Bug::LimitIgnored) => ledger.claim(&ClaimRequest { max_attempts: 9, ..request.clone() }, now),
            Some(Bug::OthersIgnored) => ledger.claim(&ClaimRequest { exclusive: false, ..request.clone() }, now),
            Some(Bug::DoneIsNotAbsorbing) => match ledger.claim(request, now) {
                Claim::Done(_) => {
                    ledger.expire_mark(&request.slot, now);
                    ledger.forget_verdict(&request.slot);
                    ledger.claim(request, now)
                }
                answer => answer,
            },
            Some(Bug::WindowByNodesClock) => {
                let last = request.slot.end() - chrono::TimeDelta::milliseconds(1);
                let inside = request.slot.start() <= shown && shown < request.slot.end();
                ledger.claim(request, if inside { now.clamp(request.slot.start(), last) } else { now })
            }
            _ => ledger.claim(request, now),
        }
    }

    fn settle(&mut self, ask: &Ask, id: SlotId, now: DateTime<Utc>, done: &mut Processed) {
        let bug = self.bug;
        let ledger = &mut self.kept.ledger;
        let shadow = self.kept.shadows.entry(id).or_default();
        match ask {
            Ask::Renew(lease) => {
                let mut answer = ledger.renew(lease, now);
                if bug == Some(Bug::RenewsAnybodys) && matches!(answer, Renewal::Lost { to: Some(_) }) {
                    ledger.set_mark_ttl(&lease.slot, lease.ttl, now);
                    answer = Renewal::Renewed;
                }
                let before = shadow.lease.filter(|before| before.token == lease.token);
                done.broken = checks::renewal(&answer, shadow.renew(lease, now));
                done.restored = before.filter(|_| answer == Renewal::Restored);
                done.answer = Some(Answer::Renewal(answer));
            }
            Ask::Complete { lease, run, done_ttl } => {
                let answer = ledger.complete(lease, run, *done_ttl, now);
                let expected = shadow.complete(lease, *done_ttl, now);
                done.broken = checks::differs(settlement(&answer), expected, Check::Answer);
                done.answer = Some(Answer::Settlement(answer));
            }
            Ask::Fail { lease, run, retry_after } => {
                let answer = ledger.fail(lease, run, *retry_after, now);
                if bug == Some(Bug::PlainDelete) && matches!(answer, Release::Overtaken { .. }) {
                    ledger.expire_mark(&lease.slot, now);
                }
                if bug == Some(Bug::CounterForgotten) {
                    ledger.forget_log(&lease.slot);
                }
                done.broken = checks::differs(release(&answer), shadow.fail(lease, *retry_after, now), Check::I4);
                done.answer = Some(Answer::Release(answer));
            }
            Ask::GiveBack { lease, run } => {
                let answer = ledger.give_back(lease, run, now);
                done.broken = checks::differs(release(&answer), shadow.give_back(lease, now), Check::I4);
                done.answer = Some(Answer::Release(answer));
            }
            Ask::Claim(_) | Ask::Close { .. } => {}
            Ask::Inspect(_) | Ask::Nodes | Ask::Heartbeat { .. } | Ask::Register(_) => {}
            Ask::Acquire(_) | Ask::RenewLock(_) | Ask::Release(_) | Ask::Pauses => {}
        }
    }

    /// Another cluster does the slot of the same name in its namespace: it is answered as if it were alone, and changes
    /// nothing here (I9).
    pub(super) fn stranger(&mut self, request: &ClaimRequest, id: SlotId, now: DateTime<Utc>) -> Option<Broken> {
        let shared = self.bug == Some(Bug::OneNamespace);
        let ledger = if shared { &mut self.kept.ledger } else { &mut self.strangers };
        let answer = ledger.claim(request, now);
        let Claim::Claimed { attempt: 1, used: 1, .. } = answer else {
            return Some((Check::I9, format!("the claim in another namespace was answered {answer:?}")));
        };
        drop(ledger.take_wakes());
        let touched = self.kept.shadows.contains_key(&id).then(|| self.compare(&request.slot, id, now)).flatten();
        let records = self.kept.ledger.inspect(std::slice::from_ref(&request.slot), now);
        let known = !self.kept.shadows.contains_key(&id) && records.iter().any(|record| record.attempts > 0);
        let text = format!("{} was changed from another namespace", request.slot);
        (known || touched.is_some()).then_some((Check::I9, text))
    }

    /// What stands in the ledger must be what stands in the shadow.
    pub(super) fn compare(&self, slot: &Slot, id: SlotId, now: DateTime<Utc>) -> Option<Broken> {
        let record = self.kept.ledger.inspect(std::slice::from_ref(slot), now).pop()?;
        checks::record(&record, self.kept.shadows.get(&id)?, now)
    }

    /// Whether the lease of this token stands.
    pub(super) fn holds(&self, id: SlotId, token: Token, now: DateTime<Utc>) -> bool {
        let shadow = self.kept.shadows.get(&id);
        shadow.and_then(|shadow| shadow.lease_at(now)).is_some_and(|lease| lease.token == token)
    }

    /// What is kept of these slots once the retention is over.
    pub(super) fn leaks<'a>(&mut self, slots: impl Iterator<Item = &'a Slot>, now: DateTime<Utc>) -> Option<Broken> {
        let after = cronward::clock::later(now, self.retention * 2);
        while self.kept.ledger.purge(after) > 0 {}
        if let Some(record) = self.kept.ledger.lock_records(&[], after).first() {
            return Some((Check::Leak, format!("the queue of {} is kept beyond the retention", record.lock)));
        }
        let mut kept = slots.filter(|slot| self.kept.ledger.counter(slot).is_some());
        kept.next().map(|slot| (Check::Leak, format!("the counter of {slot} is kept beyond the retention")))
    }

    /// Forgets slots that ended long ago, as the store itself does by then.
    pub(super) fn purge(&mut self, now: DateTime<Utc>) {
        self.kept.ledger.purge(now);
        self.strangers.purge(now);
    }
}

/// What a node finds in the registry of nodes before its heartbeat.
fn look(nodes: &[NodeEntry], own: &NodeReport, now: DateTime<Utc>) -> Looked {
    Looked { namesake: None, left: handover::left(nodes, (&own.name, &own.instance), now) }
}

/// The same locks, beside whoever is there.
fn shared(demands: &Demands) -> Demands {
    let all = demands.iter().map(|demand| Demand::shared(demand.lock().clone())).collect();
    Demands::new(all).unwrap_or_else(|_| demands.clone())
}

const fn settlement(answer: &Settlement) -> &'static str {
    match answer {
        Settlement::Recorded => "recorded",
        Settlement::Overtaken { .. } => "overtaken",
    }
}

const fn release(answer: &Release) -> &'static str {
    match answer {
        Release::Released => "released",
        Release::Expired => "expired",
        Release::Overtaken { .. } => "overtaken",
    }
}
