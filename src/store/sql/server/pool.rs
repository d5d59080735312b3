//! The connections of one store: a bounded number, made when they are needed, each used by one call at a time.
//!
//! A connection comes back only from a call that ended well: one that failed or was given up takes its connection with it.
//! When one turns out to be dead, all idle ones are taken for dead: a server that restarts is met by new
//! connections at once, and not by one failure for each old one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::{Dialect, ServerPlace, ServerSession};
use crate::store::ErrorKind;
use crate::store::sql::fault::SqlFault;

/// The most connections of one store.
pub(super) const MOST: usize = 8;

/// Idle connections.
#[derive(Debug)]
pub(super) struct Pool<D: Dialect> {
    idle: Mutex<Vec<ServerSession<D>>>,
    permits: Semaphore,
    /// Rises when all connections that were made before are given up.
    generation: AtomicU64,
    /// Calls that ended well.
    answers: AtomicU64,
    limit: Duration,
}

/// A connection while one call has it; it has none before it is asked for.
pub(super) struct Lane<'p, D: Dialect> {
    pool: &'p Pool<D>,
    session: Option<ServerSession<D>>,
    generation: u64,
    reused: bool,
    _permit: SemaphorePermit<'p>,
}

impl<D: Dialect> Pool<D> {
    /// The server gives up each statement after `limit`.
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            idle: Mutex::default(),
            permits: Semaphore::new(MOST),
            generation: AtomicU64::new(0),
            answers: AtomicU64::new(0),
            limit,
        }
    }

    /// The connection for one call; waits for one that is free.
    pub(super) async fn take(&self) -> Result<Lane<'_, D>, SqlFault> {
        let closed = |_| SqlFault::known(ErrorKind::Unavailable, "the store is closing".to_owned());
        let permit = self.permits.acquire().await.map_err(closed)?;
        let generation = self.generation.load(Ordering::Acquire);
        let session = self.idle().pop();
        Ok(Lane { pool: self, reused: session.is_some(), session, generation, _permit: permit })
    }

    /// Gives up every idle connection, and those that calls have as they come back.
    pub(super) fn forget(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.idle().clear();
    }

    /// How many calls have ended well so far.
    pub(super) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Acquire)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<ServerSession<D>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Dialect> Lane<'_, D> {
    /// The connection, made now if there is none.
    pub(super) async fn session(&mut self, place: &ServerPlace<D::Options>) -> Result<&mut ServerSession<D>, SqlFault> {
        if self.session.is_none() {
            self.session = Some(ServerSession::open(place, self.pool.limit).await?);
        }
        let gone = || SqlFault::known(ErrorKind::Unavailable, "the connection is gone".to_owned());
        self.session.as_mut().ok_or_else(gone)
    }

    /// True when another call had the connection before: the server may have closed it since.
    pub(super) const fn is_reused(&self) -> bool {
        self.reused
    }

    /// Gives up the connection and all idle ones; the next is new.
    pub(super) fn renew(&mut self) {
        self.pool.forget();
        self.generation = self.pool.generation.load(Ordering::Acquire);
        self.session = None;
        self.reused = false;
    }

    /// Hands the connection back for the next call.
    pub(super) fn keep(mut self) {
        self.pool.answers.fetch_add(1, Ordering::AcqRel);
        if self.generation == self.pool.generation.load(Ordering::Acquire)
            && let Some(session) = self.session.take()
        {
            self.pool.idle().push(session);
        }
    }
}
