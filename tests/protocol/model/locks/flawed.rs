//! What flawed stores and clients do: faults that locks elsewhere had, planted beside the real rules. Each must break a law. No production
//! code knows of them: a flaw is a step of the model's world, before or after the rules' own.

use cronward::resource::{LockEntry, LockRecord};
use cronward::store::memory::Ledger;

use super::world::{Phase, State, World, client_of, clock, token};

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// An absent entry is set again whoever has left since.
    RestoredWithoutGone,
    /// A token that was left may come back.
    NoSpentTokens,
    /// A renewal prolongs whatever stands under its token.
    RenewalWithoutFence,
    /// The store does not know two requests of one owner for such.
    OwnersAreStrangers,
    /// Each lock of a request is entered by itself.
    PlacesThatDiffer,
    /// Whoever comes while nobody was told that it holds goes before those who wait.
    Barging,
    /// A departure wakes all who wait, and whichever looks first holds.
    WakesAll,
    /// A departure wakes whoever fits in one of its locks, also where that was so before, or others are in front elsewhere.
    WakesWhoFits,
    /// A holder that leaves names who holds next, nobody else does; the one that was named may give up.
    PromotionLost,
    /// Who waits no longer passes on no hint.
    HintNotPassedOn,
    /// A release removes whoever holds.
    ReleasedByName,
    /// A client that waits no longer does not tell the store.
    LeaksOnCancel,
    /// An eviction is a lapse: nothing is remembered of it.
    EvictedAsLapsed,
    /// A renewal prolongs everybody who holds.
    RenewsOthers,
    /// A client believes that it holds until it is told otherwise.
    TrustWithoutEnd,
}

/// As a store shows it in which only those hold that somebody named.
pub(super) fn only_the_named_hold(record: &mut LockRecord) {
    record.entries.iter_mut().for_each(|entry| entry.holds &= entry.by.fence.is_some());
}

fn waits(entry: &&LockEntry) -> bool {
    entry.by.fence.is_none()
}

impl World {
    /// Whether the client stands in a queue and was not told that it holds.
    pub(super) fn waits(&self, state: &State, client: usize) -> bool {
        let records = self.records(state);
        records.iter().flat_map(|record| &record.entries).any(|entry| entry.token == token(client) && waits(&entry))
    }

    /// Takes out who waits, so that this client may hold first. They enter again behind it.
    pub(super) fn pushed_back(&self, state: &State, client: usize, ledger: &mut Ledger) -> Vec<usize> {
        match self.bug {
            Some(Bug::Barging) if !self.waits(state, client) => {}
            Some(Bug::WakesAll) if self.waits(state, client) => {}
            _ => return Vec::new(),
        }
        let records = self.records(state);
        let entries: Vec<&LockEntry> = records.iter().flat_map(|record| &record.entries).collect();
        if !entries.iter().all(waits) {
            return Vec::new();
        }
        records.iter().for_each(|record| ledger.expire_lock(&record.lock, None, clock(state.now)));
        entries.iter().map(|entry| client_of(entry.token)).filter(|other| *other != client).collect()
    }

    /// Hints everybody who waits.
    pub(super) fn wake_all(&self, state: &mut State, ledger: &Ledger) {
        let records = ledger.lock_records(&self.locks(), clock(state.now));
        let waiting = records.iter().flat_map(|record| &record.entries).filter(waits);
        state.hinted.extend(waiting.map(|entry| entry.token));
    }

    /// Hints whoever stands in front of one of the client's locks.
    pub(super) fn wake_who_fits(&self, state: &mut State, client: usize, ledger: &Ledger) {
        let names: Vec<_> = self.clients[client].demands.iter().map(|demand| demand.lock().clone()).collect();
        let records = ledger.lock_records(&names, clock(state.now));
        state.hinted.extend(records.iter().flat_map(LockRecord::holders).filter(waits).map(|entry| entry.token));
    }

    /// Who has held names the first of those that wait. One who only waited names nobody, whatever it was named itself.
    pub(super) fn name_the_next(&self, state: &State, client: usize, ledger: &mut Ledger) {
        if matches!(state.nodes[client].phase, Phase::Held { .. }) {
            let records = ledger.lock_records(&self.locks(), clock(state.now));
            let next = records.iter().filter_map(|record| record.entries.first()).find(waits);
            next.into_iter()
                .for_each(|next| drop(ledger.acquire(&self.whole(client_of(next.token)), clock(state.now))));
        }
    }

    /// Removes whoever held when the step began.
    pub(super) fn remove_holders(&self, state: &State, ledger: &mut Ledger) {
        for record in self.records(state).iter() {
            record.holders().for_each(|entry| ledger.expire_lock(&record.lock, Some(entry.token), clock(state.now)));
        }
    }

    /// Renews whatever is held.
    pub(super) fn renew_all(&self, state: &State, ledger: &mut Ledger) {
        for entry in self.records(state).iter().flat_map(LockRecord::holders) {
            let Some(fence) = entry.by.fence else { continue };
            ledger.renew_lock(&self.hold(client_of(entry.token), fence.0, &[entry.place]), clock(state.now));
        }
    }
}
