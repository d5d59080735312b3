//! How a request comes into its queues and is told how it stands: `acquire`, which is also the beat by which a waiter keeps its place.

use super::LockStep;
use super::queue::{LockState, QueueEntry, holder, lapses};
use crate::job::LockName;
use crate::resource::{AcquireRequest, Acquired, Demand, LockHolder, LockPlace, LockRefusal};
use crate::slot::{Fence, Token};

/// An entry that lasts for as much of its TTL as this is fresh: five sixths.
const FRESH: (u32, u32) = (5, 6);

/// Where a request stands in one lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    /// Where it has asked.
    There,
    /// Now beside what its owner holds.
    Moved,
}

impl LockStep {
    /// Asks for the locks ([`crate::store::LockStore::acquire`]).
    pub(in crate::store) fn acquire(&mut self, request: &AcquireRequest) -> Acquired {
        if request.queue {
            return self.enter(request);
        }
        // Tried on a copy: where it does not hold at once, nothing is written.
        let mut tried = self.clone();
        match tried.enter(request) {
            held @ Acquired::Held { .. } => {
                *self = tried;
                held
            }
            Acquired::Waiting { by, remaining, .. } | Acquired::Busy { by, remaining } => {
                Acquired::Busy { by, remaining }
            }
            // Who does not wait cannot wait for itself.
            Acquired::Refused(LockRefusal::WaitsForItself) => self.busy(request),
            refused @ Acquired::Refused(_) => refused,
        }
    }

    fn enter(&mut self, request: &AcquireRequest) -> Acquired {
        let before = self.fronts(&request.demands.names());
        self.lapse(&request.demands);
        let answer = self.place(request);
        self.tell(&before, request.token);
        answer
    }

    fn place(&mut self, request: &AcquireRequest) -> Acquired {
        let token = request.token;
        if request.demands.names().iter().any(|name| self.lock(name).is_spent(token)) {
            return Acquired::Refused(LockRefusal::Spent);
        }
        let there = request.demands.names().iter().all(|name| self.lock(name).find(token).is_some());
        if !there && let Some(refusal) = self.join(request) {
            return Acquired::Refused(refusal);
        }
        let stands: Option<Vec<Stands>> =
            request.demands.iter().map(|demand| self.beside_own(request, demand)).collect();
        let answer = stands.as_ref().map(|_| self.judge(request));
        let moved = stands.is_some_and(|stands| stands.contains(&Stands::Moved));
        match answer {
            Some(answer) if !moved || !matches!(answer, Acquired::Waiting { .. }) => {
                self.keep_alive(request, &answer);
                answer
            }
            // It would have to wait for those whom its owner keeps waiting: it leaves everywhere. As one that stands beside its owner in
            // one lock, and behind others in another: those may wait for that owner.
            _ => {
                self.take(&request.demands, token);
                Acquired::Refused(LockRefusal::WaitsForItself)
            }
        }
    }

    /// Makes its entries last, never shorter. One that waits and looks again soon after it has asked changes nothing: where no hint
    /// comes it looks many times before its beat is due, and each change is a write.
    fn keep_alive(&mut self, request: &AcquireRequest, answer: &Acquired) {
        let now = self.now;
        let until = lapses(now, request.ttl);
        let fresh = request.ttl / FRESH.1 * FRESH.0;
        let names = request.demands.names();
        let lasts = |state: &LockState| state.find(request.token).is_some_and(|entry| entry.remaining(now) >= fresh);
        if matches!(answer, Acquired::Waiting { .. }) && names.iter().all(|name| lasts(self.lock(name))) {
            return;
        }
        for name in &names {
            self.lock(name).prolong(request.token, until);
        }
    }

    /// Enters every queue with one place. Whatever was left of an earlier entry goes: parts of a request that stood at different
    /// places could wait for each other's.
    fn join(&mut self, request: &AcquireRequest) -> Option<LockRefusal> {
        for name in request.demands.names() {
            if let Some(part) = self.lock(&name).take(request.token) {
                self.lock(&name).note_lapsed(part.fence);
            }
        }
        if request.demands.names().iter().any(|name| self.lock(name).is_full()) {
            return Some(LockRefusal::Full);
        }
        let place = self.draw(&request.demands);
        let now = self.now;
        for demand in &request.demands {
            let entry = QueueEntry {
                token: request.token,
                owner: request.owner,
                place,
                fence: 0,
                weight: demand.weight(),
                of: demand.of(),
                until: lapses(now, request.ttl),
                node: request.node.clone(),
                label: request.label.clone(),
                instance: request.instance,
            };
            self.lock(demand.lock()).put(entry);
        }
        None
    }

    /// Where the owner holds the lock already by another request, this one stands beside that, not behind others: it holds at once,
    /// with everybody who held before, or not at all.
    fn beside_own(&mut self, request: &AcquireRequest, demand: &Demand) -> Option<Stands> {
        let (token, lock) = (request.token, self.lock(demand.lock()));
        let told = lock.find(token).is_some_and(|entry| entry.told().is_some());
        let Some(place) = lock.own_place(request.owner, token).filter(|_| !told) else { return Some(Stands::There) };
        let Some(entry) = lock.find(token).cloned() else { return Some(Stands::There) };
        let held = lock.holds(token);
        if held && entry.place <= place {
            return Some(Stands::There);
        }
        let mut before = lock.holding();
        before.remove(&token);
        lock.take(token);
        lock.put(QueueEntry { place, ..entry });
        let after = lock.holding();
        // Who held where it stood is waited for by nobody who came between.
        let stands = if held { Stands::There } else { Stands::Moved };
        (after.contains(&token) && before.is_subset(&after)).then_some(stands)
    }

    fn judge(&mut self, request: &AcquireRequest) -> Acquired {
        let token = request.token;
        let waits: Vec<LockName> =
            request.demands.names().into_iter().filter(|name| !self.lock(name).holds(token)).collect();
        if waits.is_empty() { self.granted(request) } else { self.waiting(request, &waits) }
    }

    fn granted(&mut self, request: &AcquireRequest) -> Acquired {
        let parts: Vec<(LockPlace, u64)> =
            request.demands.names().iter().map(|name| self.part(name, request.token)).collect();
        let told = parts.first().map_or(0, |(_, fence)| *fence);
        let fence = if told > 0 && parts.iter().all(|(_, fence)| *fence == told) {
            told
        } else {
            let fence = self.unused(request, &parts).unwrap_or_else(|| self.draw(&request.demands));
            for name in request.demands.names() {
                self.lock(&name).number(request.token, fence);
            }
            fence
        };
        let at = Fence(fence).instant().unwrap_or(self.now);
        Acquired::Held { fence: Fence(fence), at, places: parts.into_iter().map(|(place, _)| place).collect() }
    }

    /// The place that was drawn for it, where nobody was given a number since: one that waits for nobody needs no second one, so that
    /// numbers do not run ahead of the clock.
    fn unused(&mut self, request: &AcquireRequest, parts: &[(LockPlace, u64)]) -> Option<u64> {
        let place = parts.first().map(|(place, _)| *place)?;
        let newest = request.demands.names().iter().all(|name| self.lock(name).last == place);
        (newest && parts.iter().all(|(other, _)| *other == place)).then_some(place)
    }

    /// Where its entry stands, and its number.
    fn part(&mut self, name: &LockName, token: Token) -> (LockPlace, u64) {
        self.lock(name).find(token).map_or((0, 0), |entry| (entry.place, entry.fence))
    }

    fn waiting(&mut self, request: &AcquireRequest, waits: &[LockName]) -> Acquired {
        let (now, token) = (self.now, request.token);
        let (mut most, mut by, mut remaining) = (0, None, None);
        for name in waits {
            let lock = self.lock(name);
            let ahead = lock.ahead(token);
            let soonest = ahead.iter().map(|entry| entry.remaining(now)).min();
            remaining = [remaining, soonest].into_iter().flatten().min();
            if by.is_none() || ahead.len() > most {
                most = ahead.len();
                let first = || ahead.first().map(|entry| holder(entry));
                by = lock.first_holder(request.owner).or_else(first);
            }
        }
        let by = by.unwrap_or_else(|| self_as_holder(request));
        Acquired::Waiting {
            ahead: u32::try_from(most).unwrap_or(u32::MAX),
            by,
            remaining: remaining.unwrap_or(request.ttl),
        }
    }

    /// Who keeps a request from holding that does not wait and stands nowhere.
    fn busy(&mut self, request: &AcquireRequest) -> Acquired {
        let now = self.now;
        let live = |lock: &LockState| {
            let mut live = lock.clone();
            live.lapse(now);
            live
        };
        let locks: Vec<LockState> = request.demands.names().iter().map(|name| live(self.lock(name))).collect();
        let by = locks.iter().find_map(|lock| lock.first_holder(request.owner));
        let others = locks.iter().flat_map(|lock| lock.others(request.owner));
        let remaining = others.map(|entry| entry.remaining(now)).min();
        Acquired::Busy {
            by: by.unwrap_or_else(|| self_as_holder(request)),
            remaining: remaining.unwrap_or(request.ttl),
        }
    }
}

/// Nobody else is in its way: its own owner is.
fn self_as_holder(request: &AcquireRequest) -> LockHolder {
    LockHolder { node: request.node.clone(), label: request.label.clone(), owner: request.owner, fence: None }
}
