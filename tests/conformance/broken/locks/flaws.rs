//! Flaws of locks, as lock services and lock libraries have had them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::LockControl;
use super::store::{Asked, Hints, LockFlaw};
use cronward::job::{LockName, Namespace};
use cronward::resource::{
    AcquireRequest, Acquired, Demand, Demands, LockEntry, LockExit, LockHold, LockRecord, LockRefusal, LockRelease,
    LockRenewal, OwnerId,
};
use cronward::slot::{Audit, Fence, Token};
use cronward::store::Intervention;
use cronward::store::memory::Ledger;

/// Each flaw with the cases that must catch it. Every case of the suite is named by one at least.
pub(super) fn controls() -> Vec<LockControl> {
    const fn of(flaw: fn() -> Arc<dyn LockFlaw>, caught_by: &'static [&'static str]) -> LockControl {
        LockControl { flaw, caught_by }
    }
    vec![
        of(
            || Arc::new(EverybodyShares),
            &["locks::exclusive_excludes", "locks::fifo", "locks::no_overtaking_by_newcomer"],
        ),
        of(
            || Arc::new(NobodyShares),
            &[
                "locks::readers_share",
                "locks::readers_behind_writer_go_together",
                "locks::readers_and_writers_in_any_order",
            ],
        ),
        of(|| Arc::new(EachConnectionAlone), &["locks::two_processes_exclude_each_other"]),
        of(|| Arc::new(OneNamespace), &["locks::namespaces_never_touch"]),
        of(|| Arc::new(EachAskIsNew), &["locks::same_token_is_one_entry", "locks::retry_is_no_reentry"]),
        of(|| Arc::new(OneFenceForAll), &["locks::fence_rises"]),
        of(|| Arc::new(EachAskIsGranted::default()), &["locks::fence_not_by_retry"]),
        of(|| Arc::new(AskGoesToTheBack), &["locks::waiter_keeps_its_place_by_asking", "locks::fifo"]),
        of(|| Arc::new(AskOfAWaiterIsNotHeard), &["locks::waiter_keeps_its_place_by_asking"]),
        of(|| Arc::new(NothingIsSpent), &["locks::late_acquire_after_release_is_spent"]),
        of(|| Arc::new(RestoresWhatWasLeft), &["locks::late_renewal_after_release_restores_nothing"]),
        of(|| Arc::new(RestoresWhatWasFollowed), &["locks::a_lapse_that_somebody_followed_is_lost"]),
        of(|| Arc::new(RestoresOverOthers), &["locks::a_newcomer_is_never_displaced"]),
        of(|| Arc::new(RestoresNothing), &["locks::renewal_restores_what_was_lost"]),
        of(|| Arc::new(RestoresOnlyOne), &["locks::flush_restores_shared"]),
        of(|| Arc::new(RenewsTheFirstLock), &["locks::eviction_of_one_key"]),
        of(|| Arc::new(TryWaits), &["locks::try_leaves_no_trace"]),
        of(|| Arc::new(OneTtlForAll), &["locks::own_lease_only"]),
        of(|| Arc::new(EachDeadCostsATtl), &["locks::k_dead_waiters_cost_one_ttl"]),
        of(|| Arc::new(NothingLapses), &["locks::lapse_frees_without_publish", "locks::k_dead_waiters_cost_one_ttl"]),
        of(|| Arc::new(WaitersStay), &["locks::timeout_while_waiting_leaves"]),
        of(|| Arc::new(Unbounded), &["locks::queue_is_bounded"]),
        of(
            || Arc::new(WakesAll),
            &["locks::one_release_one_wake", "locks::a_departure_from_two_locks_wakes_whom_it_lets_hold"],
        ),
        of(|| Arc::new(WakesOne), &["locks::one_release_one_wake", "locks::each_of_many_who_may_hold_is_told"]),
        of(|| Arc::new(WakesOnce::default()), &["locks::the_lock_that_comes_free_last_wakes"]),
        of(|| Arc::new(EvictsNobody), &["locks::evicted_is_gone"]),
        of(|| Arc::new(AuditIsDatedByWhoAsks), &["locks::evicted_is_gone"]),
        of(
            || Arc::new(ReleaseByName),
            &["locks::release_by_another_changes_nothing", "locks::stale_release_spares_the_newer"],
        ),
        of(|| Arc::new(ReleaseTellsOnce::default()), &["locks::release_is_idempotent"]),
        of(|| Arc::new(ReleaseIsAlwaysRight), &["locks::release_of_lapsed_says_so"]),
        of(|| Arc::new(EachWeighsOne), &["locks::permits_add_up"]),
        of(|| Arc::new(WhoeverFitsGoes), &["locks::big_request_is_not_starved", "locks::no_overtaking_by_newcomer"]),
        of(|| Arc::new(LargestLimitCounts::default()), &["locks::limits_may_differ"]),
        of(|| Arc::new(FirstLimitCounts::default()), &["locks::limit_raised_while_waiting"]),
        of(
            || Arc::new(OwnersAreStrangers),
            &[
                "locks::reentry_same_owner",
                "locks::recursive_read_behind_writer",
                "locks::downgrade",
                "locks::writer_that_reads_too",
                "locks::each_entry_of_an_owner_lapses_alone",
                "locks::upgrade_refused_not_hung",
            ],
        ),
        of(|| Arc::new(ReleaseOfAllOfAnOwner), &["locks::reentry_same_owner", "locks::writer_that_reads_too"]),
        of(|| Arc::new(UpgradeWaits), &["locks::upgrade_refused_not_hung"]),
        of(
            || Arc::new(OneLockAfterTheOther),
            &["locks::many_locks_all_or_nothing", "locks::opposite_order_no_deadlock", "locks::many_locks_keep_order"],
        ),
        of(|| Arc::new(FourLocksAtMost), &["locks::sixteen_locks_are_one_step"]),
        of(|| Arc::new(ListsTheLastFirst), &["locks::all_locks_are_listed_by_name"]),
    ]
}

/// The same request for other things.
fn asking(request: &AcquireRequest, demands: impl IntoIterator<Item = Demand>) -> AcquireRequest {
    AcquireRequest { demands: Demands::new(demands.into_iter().collect()).unwrap(), ..request.clone() }
}

/// A token that the rules take for somebody else's.
fn other(token: Token) -> Token {
    Token::from_bits(token.bits() ^ 0xff)
}

/// Every entry that is kept in these locks, of one that has lapsed too.
fn kept(ledger: &Ledger, names: &[LockName]) -> Vec<LockEntry> {
    ledger.lock_records(names, DateTime::UNIX_EPOCH).into_iter().flat_map(|record| record.entries).collect()
}

fn entries(ledger: &Ledger, names: &[LockName], now: DateTime<Utc>) -> Vec<LockEntry> {
    ledger.lock_records(names, now).into_iter().flat_map(|record| record.entries).collect()
}

fn expire(ledger: &mut Ledger, names: &[LockName], token: Option<Token>, now: DateTime<Utc>) {
    names.iter().for_each(|name| ledger.expire_lock(name, token, now));
}

/// The ledger forgets the locks, and is asked by these in their place, in this order.
fn ask_anew(ledger: &mut Ledger, names: &[LockName], tokens: &[Token], asked: &Asked, now: DateTime<Utc>) {
    names.iter().for_each(|name| ledger.forget_lock(name));
    tokens.iter().filter_map(|token| asked.get(token)).for_each(|request| drop(ledger.acquire(request, now)));
}

/// A flaw that sends something else in place of what was asked.
macro_rules! asks {
    ($(#[doc = $doc:expr])* $name:ident, $request:ident => $other:expr) => {
        $(#[doc = $doc])*
        #[derive(Debug)]
        struct $name;

        impl LockFlaw for $name {
            fn acquire(&self, ledger: &mut Ledger, $request: &AcquireRequest, _: &Asked, now: DateTime<Utc>) -> Acquired {
                ledger.acquire(&$other, now)
            }
        }
    };
}

asks!(
    /// Nobody excludes anybody.
    EverybodyShares, request => asking(request, request.demands.iter().map(|demand| Demand::shared(demand.lock().clone())))
);
asks!(
    /// Readers exclude each other.
    NobodyShares, request => asking(request, request.demands.iter().map(|demand| Demand::exclusive(demand.lock().clone())))
);
asks!(
    /// The limit of a pool counts holders, and not permits.
    EachWeighsOne,
    request => asking(request, request.demands.iter().map(|demand| Demand::permits(demand.lock().clone(), 1, demand.of()).unwrap()))
);
asks!(
    /// What an owner holds already is not known to be its own.
    OwnersAreStrangers, request => AcquireRequest { owner: OwnerId::new(request.token), ..request.clone() }
);
asks!(
    /// However long a request asks to last, each lasts as long.
    OneTtlForAll, request => AcquireRequest { ttl: Duration::from_secs(60), ..request.clone() }
);
asks!(
    /// A request is cut to what a script can take.
    FourLocksAtMost, request => asking(request, request.demands.iter().take(4).cloned())
);

/// Each connection has locks of its own.
#[derive(Debug)]
struct EachConnectionAlone;

impl LockFlaw for EachConnectionAlone {
    fn namespace(&self, namespace: &Namespace, connection: u64) -> Namespace {
        Namespace::new(&format!("{namespace}.c{connection}")).unwrap()
    }
}

/// A key without its namespace.
#[derive(Debug)]
struct OneNamespace;

impl LockFlaw for OneNamespace {
    fn namespace(&self, namespace: &Namespace, _connection: u64) -> Namespace {
        Namespace::new(namespace.to_string().trim_end_matches(".b")).unwrap()
    }
}

/// Who asks again, because no answer came, stands there twice.
#[derive(Debug)]
struct EachAskIsNew;

impl LockFlaw for EachAskIsNew {
    fn acquire(&self, ledger: &mut Ledger, request: &AcquireRequest, asked: &Asked, now: DateTime<Utc>) -> Acquired {
        let answer = ledger.acquire(request, now);
        if asked.contains_key(&request.token) {
            ledger.acquire(&AcquireRequest { token: other(request.token), ..request.clone() }, now);
        }
        answer
    }
}

/// Fences do not rise.
#[derive(Debug)]
struct OneFenceForAll;

impl LockFlaw for OneFenceForAll {
    fn acquire(&self, ledger: &mut Ledger, request: &AcquireRequest, _: &Asked, now: DateTime<Utc>) -> Acquired {
        match ledger.acquire(request, now) {
            Acquired::Held { at, places, .. } => Acquired::Held { fence: Fence(7), at, places },
            other => other,
        }
    }
}

/// Each answer that it holds bears a fence of its own.
#[derive(Debug, Default)]
struct EachAskIsGranted(AtomicU64);

impl LockFlaw for EachAskIsGranted {
    fn acquire(&self, ledger: &mut Ledger, request: &AcquireRequest, _: &Asked, now: DateTime<Utc>) -> Acquired {
        match ledger.acquire(request, now) {
            Acquired::Held { fence, at, places } => {
                Acquired::Held { fence: Fence(fence.0 + self.0.fetch_add(1, Ordering::Relaxed)), at, places }
            }
            other => other,
        }
    }
}

/// Who asks again waits behind those who came meanwhile.
#[derive(Debug)]
struct AskGoesToTheBack;

impl LockFlaw for AskGoesToTheBack {
    fn acquire(&self, ledger: &mut Ledger, request: &AcquireRequest, _: &Asked, now: DateTime<Utc>) -> Acquired {
        let names = request.demands.names();
        let own = |entry: &LockEntry| entry.token == request.token && !entry.holds;
        if entries(ledger, &names, now).iter().any(own) {
            expire(ledger, &names, Some(request.token), now);
        }
        ledger.acquire(request, now)
    }
}

/// Who waits lasts as long as its first request said, however often it asks.
#[derive(Debug)]
struct AskOfAWaiterIsNotHeard;

impl LockFlaw for AskOfAWaiterIsNotHeard {
    fn acquire(&self, ledger: &mut Ledger, request: &AcquireRequest, _: &Asked, now: DateTime<Utc>) -> Acquired {
        let waits = |entry: &LockEntry| entry.token == request.token && !entry.holds;
        if entries(ledger, &request.demands.names(), now).iter().any(waits) {
            return ledger.clone().acquire(request, now);
        }
        ledger.acquire(request, now)
    }
}

/// A late copy is taken for a new request.
#[derive(Debug)]
struct NothingIsSpent;

impl LockFlaw for NothingIsSpent {
    fn acquire(&self, ledger: &mut Ledger, request: &AcquireRequest, _: &Asked, now: DateTime<Utc>) -> Acquired {
        match ledger.acquire(request, now) {
            Acquired::Refused(LockRefusal::Spent) => {
                ledger.acquire(&AcquireRequest { token: other(request.token), ..request.clone() }, now)
            }
            other => other,
        }
    }
}

fn set_again(ledger: &mut Ledger, hold: &LockHold, now: DateTime<Utc>) -> LockRenewal {
    let token = other(hold.token);
    let request = AcquireRequest::new(token, hold.node.clone(), hold.instance, hold.ttl, hold.demands.clone());
    ledger.acquire(&AcquireRequest { queue: false, ..request }, now);
    LockRenewal::Restored
}

/// A renewal that comes late brings back what its holder has left.
#[derive(Debug)]
struct RestoresWhatWasLeft;

impl LockFlaw for RestoresWhatWasLeft {
    fn renew(&self, ledger: &mut Ledger, hold: &LockHold, now: DateTime<Utc>) -> LockRenewal {
        match ledger.renew_lock(hold, now) {
            LockRenewal::Lost { to: None } => set_again(ledger, hold, now),
            other => other,
        }
    }
}

/// A lock that is free is set again, whoever has had it meanwhile.
#[derive(Debug)]
struct RestoresWhatWasFollowed;

impl LockFlaw for RestoresWhatWasFollowed {
    fn renew(&self, ledger: &mut Ledger, hold: &LockHold, now: DateTime<Utc>) -> LockRenewal {
        let is_free = entries(ledger, &hold.demands.names(), now).is_empty();
        match ledger.renew_lock(hold, now) {
            LockRenewal::Lost { .. } if is_free => set_again(ledger, hold, now),
            other => other,
        }
    }
}

/// Who held before the data were lost takes the lock from whoever holds it now.
#[derive(Debug)]
struct RestoresOverOthers;

impl LockFlaw for RestoresOverOthers {
    fn renew(&self, ledger: &mut Ledger, hold: &LockHold, now: DateTime<Utc>) -> LockRenewal {
        match ledger.renew_lock(hold, now) {
            LockRenewal::Lost { .. } => {
                expire(ledger, &hold.demands.names(), None, now);
                set_again(ledger, hold, now)
            }
            other => other,
        }
    }
}

/// What is not there cannot be renewed.
#[derive(Debug)]
struct RestoresNothing;

impl LockFlaw for RestoresNothing {
    fn renew(&self, ledger: &mut Ledger, hold: &LockHold, now: DateTime<Utc>) -> LockRenewal {
        let mut copy = ledger.clone();
        match copy.renew_lock(hold, now) {
            LockRenewal::Restored => LockRenewal::Lost { to: None },
            answer => {
                *ledger = copy;
                answer
            }
        }
    }
}

/// Of several who held before the data were lost the first that comes is set again.
#[derive(Debug)]
struct RestoresOnlyOne;

impl LockFlaw for RestoresOnlyOne {
    fn renew(&self, ledger: &mut Ledger, hold: &LockHold, now: DateTime<Utc>) -> LockRenewal {
        let there = entries(ledger, &hold.demands.names(), now);
        if there.first().is_some_and(|_| there.iter().all(|entry| entry.token != hold.token)) {
            return LockRenewal::Lost { to: there.into_iter().next().map(|entry| entry.by) };
        }
        ledger.renew_lock(hold, now)
    }
}

/// Of several locks the first is renewed.
#[derive(Debug)]
struct RenewsTheFirstLock;

impl LockFlaw for RenewsTheFirstLock {
    fn renew(&self, ledger: &mut Ledger, hold: &LockHold, now: DateTime<Utc>) -> LockRenewal {
        let demands = Demands::new(hold.demands.iter().take(1).cloned().collect()).unwrap();
        let places = hold.places.iter().take(1).copied().collect();
        ledger.renew_lock(&LockHold { demands, places, ..hold.clone() }, now)
    }
}

/// Who does not want to wait stands in the queue all the same.
#[derive(Debug)]
struct TryWaits;

impl LockFlaw for TryWaits {
    fn acquire(&self, ledger: &mut Ledger, request: &AcquireRequest, _: &Asked, now: DateTime<Utc>) -> Acquired {
        match ledger.acquire(&AcquireRequest { queue: true, ..request.clone() }, now) {
            Acquired::Waiting { by, remaining, .. } if !request.queue => Acquired::Busy { by, remaining },
            other => other,
        }
    }
}

/// Whoever is dead keeps the lock from those behind it for a TTL of its own, one after another.
#[derive(Debug)]
struct EachDeadCostsATtl;

impl LockFlaw for EachDeadCostsATtl {
    fn acquire(&self, ledger: &mut Ledger, request: &AcquireRequest, asked: &Asked, now: DateTime<Utc>) -> Acquired {
        let names = request.demands.names();
        let tokens: Vec<_> = kept(ledger, &names).iter().map(|entry| entry.token).collect();
        if tokens.len() > 1 && entries(ledger, &names, now).is_empty() {
            ask_anew(ledger, &names, &tokens[1..], asked, now);
        }
        ledger.acquire(request, now)
    }
}

/// A lock is free when its holder says so, and never else.
#[derive(Debug)]
struct NothingLapses;

impl LockFlaw for NothingLapses {
    fn acquire(&self, ledger: &mut Ledger, request: &AcquireRequest, asked: &Asked, now: DateTime<Utc>) -> Acquired {
        let names = request.demands.names();
        let tokens: Vec<_> = kept(ledger, &names).iter().map(|entry| entry.token).collect();
        if tokens.len() > entries(ledger, &names, now).len() {
            ask_anew(ledger, &names, &tokens, asked, now);
        }
        ledger.acquire(request, now)
    }
}

/// Only who holds can leave.
#[derive(Debug)]
struct WaitersStay;

impl LockFlaw for WaitersStay {
    fn release(&self, ledger: &mut Ledger, exit: &LockExit, now: DateTime<Utc>) -> LockRelease {
        if exit.fence.is_some() { ledger.release(exit, now) } else { LockRelease::Released }
    }
}

/// A queue that is full makes room.
#[derive(Debug)]
struct Unbounded;

impl LockFlaw for Unbounded {
    fn acquire(&self, ledger: &mut Ledger, request: &AcquireRequest, _: &Asked, now: DateTime<Utc>) -> Acquired {
        match ledger.acquire(request, now) {
            Acquired::Refused(LockRefusal::Full) => {
                let last = entries(ledger, &request.demands.names(), now).pop().unwrap();
                expire(ledger, &request.demands.names(), Some(last.token), now);
                ledger.acquire(request, now)
            }
            other => other,
        }
    }
}

/// A release tells everybody who waits.
#[derive(Debug)]
struct WakesAll;

impl LockFlaw for WakesAll {
    fn hints(&self, ledger: &Ledger, told: Hints, asked: &Asked, now: DateTime<Utc>) -> Hints {
        let Some(request) = told.first().and_then(|(_, token)| asked.get(token)) else { return told };
        let there = entries(ledger, &request.demands.names(), now);
        let waiting = there.iter().filter(|entry| entry.by.fence.is_none());
        waiting.filter_map(|entry| Some((asked.get(&entry.token)?.instance, entry.token))).collect()
    }
}

/// A release tells one, where several may hold.
#[derive(Debug)]
struct WakesOne;

impl LockFlaw for WakesOne {
    fn hints(&self, _: &Ledger, told: Hints, _: &Asked, _: DateTime<Utc>) -> Hints {
        told.into_iter().take(1).collect()
    }
}

/// Who was told once is not told again.
#[derive(Debug, Default)]
struct WakesOnce(Mutex<Vec<Token>>);

impl LockFlaw for WakesOnce {
    fn hints(&self, _: &Ledger, told: Hints, _: &Asked, _: DateTime<Utc>) -> Hints {
        let mut before = self.0.lock().unwrap();
        let new: Hints = told.into_iter().filter(|(_, token)| !before.contains(token)).collect();
        before.extend(new.iter().map(|(_, token)| *token));
        new
    }
}

/// What an operator takes out is asked for again, and there again.
#[derive(Debug)]
struct EvictsNobody;

impl LockFlaw for EvictsNobody {
    fn evict(
        &self,
        ledger: &mut Ledger,
        (lock, token): (&LockName, Token),
        audit: &Audit,
        now: DateTime<Utc>,
    ) -> Intervention {
        ledger.clone().evict(lock, token, audit, now)
    }
}

/// The record of what an operator did bears the operator's clock.
#[derive(Debug)]
struct AuditIsDatedByWhoAsks;

impl LockFlaw for AuditIsDatedByWhoAsks {
    fn records(&self, ledger: &Ledger, names: &[LockName], now: DateTime<Utc>) -> Vec<LockRecord> {
        let mut records = ledger.lock_records(names, now);
        records.iter_mut().flat_map(|record| &mut record.audit).for_each(|audit| audit.at = DateTime::UNIX_EPOCH);
        records
    }
}

/// A release frees the lock, whoever holds it.
#[derive(Debug)]
struct ReleaseByName;

impl LockFlaw for ReleaseByName {
    fn release(&self, ledger: &mut Ledger, exit: &LockExit, now: DateTime<Utc>) -> LockRelease {
        let holders: Vec<_> =
            entries(ledger, &exit.demands.names(), now).into_iter().filter(|entry| entry.holds).collect();
        let answer = ledger.release(exit, now);
        holders.iter().for_each(|entry| expire(ledger, &exit.demands.names(), Some(entry.token), now));
        answer
    }
}

/// A release of one entry takes all that its owner has: one count for an owner, set back to zero.
#[derive(Debug)]
struct ReleaseOfAllOfAnOwner;

impl LockFlaw for ReleaseOfAllOfAnOwner {
    fn release(&self, ledger: &mut Ledger, exit: &LockExit, now: DateTime<Utc>) -> LockRelease {
        let names = exit.demands.names();
        let before = entries(ledger, &names, now);
        let answer = ledger.release(exit, now);
        let owner = before.iter().find(|entry| entry.token == exit.token).map(|entry| entry.by.owner);
        for entry in before.iter().filter(|entry| Some(entry.by.owner) == owner) {
            expire(ledger, &names, Some(entry.token), now);
        }
        answer
    }
}

/// A release whose answer was lost finds nothing to release.
#[derive(Debug, Default)]
struct ReleaseTellsOnce(Mutex<Vec<Token>>);

impl LockFlaw for ReleaseTellsOnce {
    fn release(&self, ledger: &mut Ledger, exit: &LockExit, now: DateTime<Utc>) -> LockRelease {
        let answer = ledger.release(exit, now);
        let mut before = self.0.lock().unwrap();
        if before.contains(&exit.token) {
            return LockRelease::Expired;
        }
        before.push(exit.token);
        answer
    }
}

/// A release that came too late is told that all was well.
#[derive(Debug)]
struct ReleaseIsAlwaysRight;

impl LockFlaw for ReleaseIsAlwaysRight {
    fn release(&self, ledger: &mut Ledger, exit: &LockExit, now: DateTime<Utc>) -> LockRelease {
        ledger.release(exit, now);
        LockRelease::Released
    }
}

/// Who fits beside those who hold goes before those who wait.
#[derive(Debug)]
struct WhoeverFitsGoes;

impl LockFlaw for WhoeverFitsGoes {
    fn acquire(&self, ledger: &mut Ledger, request: &AcquireRequest, asked: &Asked, now: DateTime<Utc>) -> Acquired {
        let names = request.demands.names();
        let (told, waiting): (Vec<LockEntry>, Vec<LockEntry>) =
            entries(ledger, &names, now).into_iter().partition(|entry| entry.by.fence.is_some());
        let mut alone = ledger.clone();
        waiting.iter().for_each(|entry| expire(&mut alone, &names, Some(entry.token), now));
        let answer = alone.acquire(&AcquireRequest { queue: false, ..request.clone() }, now);
        if told.iter().any(|entry| entry.token == request.token) || !matches!(answer, Acquired::Held { .. }) {
            return ledger.acquire(request, now);
        }
        waiting
            .iter()
            .filter(|entry| entry.token != request.token)
            .filter_map(|entry| asked.get(&entry.token))
            .for_each(|behind| drop(alone.acquire(behind, now)));
        *ledger = alone;
        answer
    }
}

/// Limits by lock: the largest one, or the first one, that was ever named.
type Limits = Mutex<BTreeMap<LockName, u32>>;

fn limited(request: &AcquireRequest, limits: &Limits, which: fn(u32, u32) -> u32) -> AcquireRequest {
    let mut limits = limits.lock().unwrap();
    let demands = request.demands.iter().map(|demand| {
        let limit = limits.entry(demand.lock().clone()).or_insert_with(|| demand.of());
        *limit = which(*limit, demand.of()).max(demand.weight());
        if *limit > 1_000_000 {
            demand.clone()
        } else {
            Demand::permits(demand.lock().clone(), demand.weight(), *limit).unwrap()
        }
    });
    asking(request, demands)
}

/// Who asks with a smaller limit is held to the largest.
#[derive(Debug, Default)]
struct LargestLimitCounts(Limits);

impl LockFlaw for LargestLimitCounts {
    fn acquire(&self, ledger: &mut Ledger, request: &AcquireRequest, _: &Asked, now: DateTime<Utc>) -> Acquired {
        ledger.acquire(&limited(request, &self.0, u32::max), now)
    }
}

/// A limit that was set once stays.
#[derive(Debug, Default)]
struct FirstLimitCounts(Limits);

impl LockFlaw for FirstLimitCounts {
    fn acquire(&self, ledger: &mut Ledger, request: &AcquireRequest, _: &Asked, now: DateTime<Utc>) -> Acquired {
        ledger.acquire(&limited(request, &self.0, |first, _| first), now)
    }
}

/// Two readers who both want to write wait for each other.
#[derive(Debug)]
struct UpgradeWaits;

impl LockFlaw for UpgradeWaits {
    fn acquire(&self, ledger: &mut Ledger, request: &AcquireRequest, _: &Asked, now: DateTime<Utc>) -> Acquired {
        match ledger.acquire(request, now) {
            Acquired::Refused(LockRefusal::WaitsForItself) => {
                ledger.acquire(&AcquireRequest { owner: OwnerId::new(request.token), ..request.clone() }, now)
            }
            other => other,
        }
    }
}

/// A request over several locks takes one after the other, each as it has those before.
#[derive(Debug)]
struct OneLockAfterTheOther;

impl LockFlaw for OneLockAfterTheOther {
    fn acquire(&self, ledger: &mut Ledger, request: &AcquireRequest, _: &Asked, now: DateTime<Utc>) -> Acquired {
        let mut all = Vec::new();
        let mut last = None;
        for demand in request.demands.iter() {
            let answer = ledger.acquire(&asking(request, [demand.clone()]), now);
            let Acquired::Held { fence, at, places } = answer else { return answer };
            all.extend(places);
            last = Some((fence, at));
        }
        let (fence, at) = last.unwrap();
        Acquired::Held { fence, at, places: all }
    }
}

/// All locks, in no order.
#[derive(Debug)]
struct ListsTheLastFirst;

impl LockFlaw for ListsTheLastFirst {
    fn records(&self, ledger: &Ledger, names: &[LockName], now: DateTime<Utc>) -> Vec<LockRecord> {
        let records = ledger.lock_records(names, now).into_iter();
        if names.is_empty() { records.rev().collect() } else { records.collect() }
    }
}
