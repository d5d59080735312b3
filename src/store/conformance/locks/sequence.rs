//! Random sequences of operations on locks: a store gives the same answers and hints as the rules, and knows the same queues afterwards.
//!
//! [`LockMove`]s are plain data, so that any generator can make and shrink them; `tests/conformance/sequences.rs` uses proptest. Time does
//! not pass in a sequence: what would lapse is made to by the probe, in the store and in the ledger alike. Numbers and instants cannot be
//! equal, and are compared by their order alone.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::later;
use crate::resource::{
    AcquireRequest, Acquired, Demand, LockHold, LockName, LockRecord, LockRelease, LockRenewal, OwnerId,
};
use crate::slot::Token;
use crate::store::LockWakeups;
use crate::store::conformance::bench::audit;
use crate::store::conformance::locks::bench::{LockBench, heard, listening, name, read, some, write};
use crate::store::conformance::{Failure, Setup};
use crate::store::memory::Ledger;

/// Clients of a sequence. The first two are one owner.
const CLIENTS: u8 = 5;

/// Locks of a sequence.
const LOCKS: [&str; 2] = ["x", "y"];

/// The process to whom the hints of a sequence go.
const LISTENER: Token = Token::from_bits(9);

/// One step of a sequence. Clients, demands and locks are taken modulo how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMove {
    /// The client asks for one of a few things, and waits or not; where it has asked and not left, for the same again.
    Ask(u8, u8, bool),
    /// The client renews what it was told last, also where it has left.
    Renew(u8),
    /// The client leaves; with a copy of its request still under way, or none.
    Leave(u8, bool),
    /// That copy arrives.
    Late(u8),
    /// The client's entries lapse.
    Lapse(u8),
    /// A lock is lost.
    Forget(u8),
    /// An operator takes the client out of its first lock.
    Evict(u8),
}

/// One client: its last request, and what it was told of it by the store and by the ledger.
#[derive(Clone, Debug, Default)]
struct Seat {
    request: Option<AcquireRequest>,
    holds: Option<(LockHold, LockHold)>,
    left: bool,
    copy: bool,
}

/// Both sides.
struct Pair {
    bench: LockBench,
    hints: LockWakeups,
    ledger: Ledger,
    now: DateTime<Utc>,
    seats: Vec<Seat>,
    compared: u32,
}

/// Whether a store answers this sequence as the rules do, and knows the same after each step; how many operations were compared.
///
/// # Errors
/// The first difference, in words.
pub async fn agree_on_locks(setup: Arc<dyn Setup>, namespace: &str, moves: &[LockMove]) -> Result<u32, String> {
    let told = |failure: Failure| failure.to_string();
    let bench = LockBench::open(setup, namespace).await.map_err(told)?;
    let now = later(DateTime::UNIX_EPOCH, Duration::from_secs(1_000_000));
    let seats = vec![Seat::default(); usize::from(CLIENTS)];
    let hints = listening(&bench, LISTENER).await.map_err(told)?;
    let mut pair = Pair { bench, hints, ledger: Ledger::new(Duration::from_secs(86_400)), now, seats, compared: 0 };
    for step in moves {
        pair.take(*step).await.map_err(|failure| format!("{step:?}: {failure}"))?;
    }
    Ok(pair.compared)
}

fn menu(at: u8) -> Result<Vec<Demand>, Failure> {
    Ok(match at % 8 {
        0 => vec![write("x")?],
        1 => vec![read("x")?],
        2 => vec![some("x", 1, 2)?],
        3 => vec![some("x", 2, 3)?],
        4 => vec![write("x")?, write("y")?],
        5 => vec![write("y")?, read("x")?],
        6 => vec![some("y", 1, 2)?, some("x", 1, 2)?],
        _ => vec![read("x")?, read("y")?],
    })
}

fn lock(at: u8) -> Result<LockName, Failure> {
    name(LOCKS.get(usize::from(at) % LOCKS.len()).copied().unwrap_or("x"))
}

impl Pair {
    async fn take(&mut self, step: LockMove) -> Result<(), Failure> {
        self.now = later(self.now, Duration::from_millis(1));
        match step {
            LockMove::Ask(client, demands, queue) => self.ask(client % CLIENTS, demands, queue).await?,
            LockMove::Renew(client) => self.renew(client % CLIENTS).await?,
            LockMove::Leave(client, copy) => self.leave(client % CLIENTS, copy).await?,
            LockMove::Late(client) => {
                let seat = self.seat(client % CLIENTS);
                if let Some(request) = seat.request.filter(|_| seat.left && seat.copy) {
                    self.acquire(client % CLIENTS, &request).await?;
                }
            }
            LockMove::Lapse(client) => {
                let seat = self.seat(client % CLIENTS);
                if let Some(request) = &seat.request {
                    for name in request.demands.names() {
                        self.bench.probe.expire(&name, Some(request.token)).await?;
                        self.ledger.expire_lock(&name, Some(request.token), self.now);
                    }
                }
            }
            LockMove::Forget(at) => self.forget(&lock(at)?).await?,
            LockMove::Evict(client) => self.evict(client % CLIENTS).await?,
        }
        self.same_hints().await?;
        self.same_queues().await
    }

    fn seat(&self, client: u8) -> Seat {
        self.seats.get(usize::from(client)).cloned().unwrap_or_default()
    }

    fn put(&mut self, client: u8, seat: Seat) {
        if let Some(place) = self.seats.get_mut(usize::from(client)) {
            *place = seat;
        }
    }

    async fn ask(&mut self, client: u8, demands: u8, queue: bool) -> Result<(), Failure> {
        let seat = self.seat(client);
        let request = match seat.request.filter(|_| !seat.left) {
            Some(request) => request,
            None => {
                let fresh = self.bench.request(&format!("n{client}"), &menu(demands)?)?;
                let owner = if client < 2 { OwnerId::of_text("both") } else { fresh.owner };
                AcquireRequest { owner, queue, instance: LISTENER, ..fresh }
            }
        };
        let holds = if seat.left { None } else { seat.holds };
        self.put(client, Seat { request: Some(request.clone()), holds, left: false, copy: false });
        self.acquire(client, &request).await
    }

    async fn acquire(&mut self, client: u8, request: &AcquireRequest) -> Result<(), Failure> {
        let (answer, wanted) = (self.bench.store.acquire(request).await?, self.ledger.acquire(request, self.now));
        self.compared += 1;
        let mut seat = self.seat(client);
        if let (
            Acquired::Held { fence, places, .. },
            Acquired::Held { fence: wanted_fence, places: wanted_places, .. },
        ) = (&answer, &wanted)
        {
            let told = (request.granted(*fence, places.clone()), request.granted(*wanted_fence, wanted_places.clone()));
            if let Some(before) = &seat.holds {
                ensure_eq!(told.0.fence == before.0.fence, told.1.fence == before.1.fence, "the same grant");
                ensure!(told.0.fence >= before.0.fence, "fences rise");
            }
            seat.holds = Some(told);
            self.put(client, seat);
        }
        ensure_eq!(plain_answer(&answer), plain_answer(&wanted));
        Ok(())
    }

    async fn renew(&mut self, client: u8) -> Result<(), Failure> {
        let Some((hold, wanted)) = self.seat(client).holds else { return Ok(()) };
        let (answer, wanted) = (self.bench.store.renew_lock(&hold).await?, self.ledger.renew_lock(&wanted, self.now));
        self.compared += 1;
        let plain = |answer: &LockRenewal| match answer {
            LockRenewal::Renewed => "renewed",
            LockRenewal::Restored => "restored",
            LockRenewal::Lost { .. } => "lost",
        };
        ensure_eq!(plain(&answer), plain(&wanted));
        Ok(())
    }

    async fn leave(&mut self, client: u8, copy: bool) -> Result<(), Failure> {
        let seat = self.seat(client);
        let Some(request) = seat.request.clone().filter(|_| !seat.left) else { return Ok(()) };
        let (exit, wanted) = match &seat.holds {
            Some((hold, wanted)) => (hold.exit(copy), wanted.exit(copy)),
            None => (request.exit(copy), request.exit(copy)),
        };
        let (answer, wanted) = (self.bench.store.release(&exit).await?, self.ledger.release(&wanted, self.now));
        self.compared += 1;
        let plain = |answer: &LockRelease| match answer {
            LockRelease::Released => "released",
            LockRelease::Expired => "expired",
            LockRelease::Overtaken { .. } => "overtaken",
        };
        ensure_eq!(plain(&answer), plain(&wanted));
        self.put(client, Seat { left: true, copy, ..seat });
        Ok(())
    }

    /// The store's clock is then past every number that it gave: those go on from it.
    async fn forget(&mut self, lock: &LockName) -> Result<(), Failure> {
        self.bench.probe.forget(lock).await?;
        self.ledger.forget_lock(lock);
        self.now = later(self.now, Duration::from_secs(1));
        let last = self.seats.iter().filter_map(|seat| seat.holds.as_ref()?.0.since()).max();
        if let Some(last) = last {
            // As many numbers again may have been given to those who wait.
            let past = later(last, Duration::from_millis(u64::from(CLIENTS) * 4));
            while self.bench.store.locks(&[]).await?.0 <= past {}
        }
        Ok(())
    }

    async fn evict(&mut self, client: u8) -> Result<(), Failure> {
        let Some(request) = self.seat(client).request else { return Ok(()) };
        if let Some(name) = request.demands.names().first() {
            let (token, audit) = (request.token, audit("unlock"));
            let answer = self.bench.store.evict(name, token, &audit).await?;
            ensure_eq!(answer, self.ledger.evict(name, token, &audit, self.now));
            self.compared += 1;
        }
        Ok(())
    }

    /// Each that this step asks for, once. What was told too much comes before those of the next one.
    async fn same_hints(&mut self) -> Result<(), Failure> {
        let mut wanted: Vec<Token> = self.ledger.take_lock_wakes().into_iter().map(|(_, token)| token).collect();
        let mut told = heard(&self.bench, &mut self.hints, wanted.len()).await;
        wanted.sort_unstable();
        told.sort_unstable();
        ensure_eq!(told, wanted, "who is hinted");
        Ok(())
    }

    async fn same_queues(&self) -> Result<(), Failure> {
        let names = LOCKS.iter().map(|lock| name(lock)).collect::<Result<Vec<_>, _>>()?;
        let (_, known) = self.bench.store.locks(&names).await?;
        let wanted = self.ledger.lock_records(&names, self.now);
        ensure_eq!(plain_queues(&known), plain_queues(&wanted));
        Ok(())
    }
}

fn plain_answer(answer: &Acquired) -> String {
    match answer {
        Acquired::Held { places, .. } => format!("held in {}", places.len()),
        Acquired::Waiting { ahead, by, .. } => format!("waiting behind {ahead}, held by {}", by.node),
        Acquired::Busy { .. } => "busy".to_owned(),
        Acquired::Refused(why) => format!("refused: {why}"),
    }
}

/// Each queue in its order: whose entry, for what, whether it holds and was told so.
fn plain_queues(records: &[LockRecord]) -> Vec<(String, Vec<String>)> {
    let entry = |entry: &crate::resource::LockEntry| {
        format!("{} {} {} {}", entry.token, entry.demand, entry.holds, entry.by.fence.is_some())
    };
    records.iter().map(|record| (record.lock.to_string(), record.entries.iter().map(entry).collect())).collect()
}
