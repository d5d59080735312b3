//! The connections that there are: so many at the most, and which of them does nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Every connection.
#[derive(Debug)]
pub(super) struct Seats {
    room: Arc<Semaphore>,
    taken: Mutex<Taken>,
    /// One of them has nothing to do.
    idle: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    /// Counts whatever happens: the smaller, the longer ago.
    moment: u64,
    guests: BTreeMap<u64, Guest>,
}

/// One connection.
#[derive(Debug)]
struct Guest {
    /// Since when it has nothing to do; none while a request is answered.
    idle_since: Option<u64>,
    end: CancellationToken,
}

/// One connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Arc<Seats>,
    id: u64,
    /// Fires when another one needs the place more.
    pub(super) end: CancellationToken,
    _room: OwnedSemaphorePermit,
}

impl Seats {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { room: Arc::new(Semaphore::new(most)), taken: Mutex::default(), idle: Notify::new() })
    }

    /// A place for a connection. Where all are taken, the one that has done nothing for the longest time loses its own; while each is
    /// busy, the next waits.
    pub(super) async fn take(self: &Arc<Self>) -> Option<Seat> {
        let room = loop {
            let idle = self.idle.notified();
            if let Ok(room) = Arc::clone(&self.room).try_acquire_owned() {
                break room;
            }
            let is_coming = self.drop_one();
            tokio::select! {
                room = Arc::clone(&self.room).acquire_owned() => break room.ok()?,
                // Nobody else has to give way for this one.
                () = idle, if !is_coming => {}
            }
        };
        let end = CancellationToken::new();
        let mut taken = self.lock();
        let id = taken.next();
        taken.guests.insert(id, Guest { idle_since: Some(id), end: end.clone() });
        drop(taken);
        Some(Seat { seats: Arc::clone(self), id, end, _room: room })
    }

    /// Whether one gives way.
    fn drop_one(&self) -> bool {
        let taken = self.lock();
        let idle = taken.guests.values().filter(|guest| !guest.end.is_cancelled());
        let longest = idle.filter_map(|guest| Some((guest.idle_since?, guest))).min_by_key(|(since, _)| *since);
        longest.inspect(|(_, guest)| guest.end.cancel()).is_some()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn next(&mut self) -> u64 {
        self.moment = self.moment.saturating_add(1);
        self.moment
    }
}

impl Seat {
    /// A request came.
    pub(super) fn begin(&self) {
        self.set(|_| None);
    }

    /// It was answered; what is left is to write that.
    pub(super) fn done(&self) {
        self.set(Some);
        self.seats.idle.notify_one();
    }

    fn set(&self, idle_since: impl FnOnce(u64) -> Option<u64>) {
        let mut taken = self.seats.lock();
        let now = taken.next();
        if let Some(guest) = taken.guests.get_mut(&self.id) {
            guest.idle_since = idle_since(now);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.lock().guests.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn of_two_that_are_idle_the_one_that_was_busy_later_stays() {
        let seats = Seats::new(2);
        let (first, second) = (seats.take().await.unwrap(), seats.take().await.unwrap());
        first.begin();
        first.done();
        assert!(Box::pin(seats.take()).now_or_never().is_none());
        assert!(second.end.is_cancelled() && !first.end.is_cancelled());
    }

    #[tokio::test]
    async fn the_one_that_is_idle_for_the_longest_time_gives_way_and_a_busy_one_never() {
        let seats = Seats::new(2);
        let (first, second) = (seats.take().await.unwrap(), seats.take().await.unwrap());
        first.begin();
        let mut third = Box::pin(seats.take());
        assert!((&mut third).now_or_never().is_none());
        assert!(second.end.is_cancelled() && !first.end.is_cancelled());
        drop(second);
        let third = third.await.unwrap();
        third.begin();
        let mut fourth = Box::pin(seats.take());
        assert!((&mut fourth).now_or_never().is_none());
        assert!(!first.end.is_cancelled() && !third.end.is_cancelled(), "both are busy: the next waits");
        first.done();
        assert!((&mut fourth).now_or_never().is_none());
        assert!(first.end.is_cancelled(), "as soon as one is not");
        drop(first);
        assert!(fourth.await.is_some());
    }
}
