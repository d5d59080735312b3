//! The masters, asked all at once, and heard all at once.
//!
//! An answer is waited for until enough have come, then for a little grace, and never longer than a master may take: one that hangs
//! does not make a claim long. What was sent is carried out also when nobody waits.
//!
//! Hints from any master are hints. Each is passed on: the first tells that something changed, the later ones that more masters know of
//! it, and the guard looks no more often than its own waits allow.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::task::JoinHandle;

use crate::store::redis::RedisStore;
use crate::store::redlock::Quorum;
use crate::store::{Applied, ErrorKind, Op, StoreError};

/// How much of an operation's time limit one master may take: a claim asks twice and may have to take back.
const PATIENCE: u32 = 4;
/// How much of it the others are waited for once enough have answered: whoever is well answers within that, and what it
/// knows is worth hearing.
const GRACE: u32 = 25;

/// The masters.
#[derive(Debug)]
pub(super) struct Masters {
    pub(super) all: Vec<Arc<RedisStore>>,
    pub(super) quorum: Quorum,
    op_timeout: Duration,
}

/// What came of asking, by master.
#[derive(Debug)]
pub(super) struct Heard<T> {
    pub(super) said: Vec<Option<T>>,
    errors: Vec<Option<StoreError>>,
}

type Reply<T> = (usize, Result<T, StoreError>);

impl Masters {
    pub(super) fn new(masters: Vec<RedisStore>, quorum: Quorum, op_timeout: Duration) -> Self {
        Self { all: masters.into_iter().map(Arc::new).collect(), quorum, op_timeout }
    }

    /// One of them by itself.
    pub(super) fn of_one(master: Arc<RedisStore>, op_timeout: Duration) -> Self {
        Self { all: vec![master], quorum: Quorum::one(), op_timeout }
    }

    /// The longest that one master may take.
    pub(super) fn patience(op_timeout: Duration) -> Duration {
        op_timeout / PATIENCE
    }

    /// Asks every master, until a majority has answered.
    pub(super) async fn ask<T, F>(&self, call: impl Fn(Arc<RedisStore>) -> F) -> Heard<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let majority = self.quorum.majority();
        self.ask_until(call, |said| said.iter().flatten().count() >= majority).await
    }

    /// Asks every master, until this is true of the answers.
    pub(super) async fn ask_until<T, F>(
        &self,
        call: impl Fn(Arc<RedisStore>) -> F,
        enough: impl Fn(&[Option<T>]) -> bool + Send + Sync,
    ) -> Heard<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let everybody = 0..self.all.len();
        let mut pending: FuturesUnordered<_> = everybody.map(|index| self.send(index, &call)).collect();
        let mut heard = Heard::nothing(self.all.len());
        let patience = Self::patience(self.op_timeout);
        let limit = tokio::time::timeout(patience, listen(&mut pending, &mut heard, |said| enough(said)));
        if limit.await.is_ok() && !pending.is_empty() {
            let grace = listen(&mut pending, &mut heard, |_| false);
            // Whoever has not answered by now is silent.
            let _ = tokio::time::timeout((self.op_timeout / GRACE).min(patience), grace).await;
        }
        heard
    }

    /// Asks one master, in a task of its own: what was begun goes on also when nobody waits for it any more.
    pub(super) fn send<T, F, C>(&self, index: usize, call: &C) -> impl Future<Output = Reply<T>> + Send + use<T, F, C>
    where
        C: Fn(Arc<RedisStore>) -> F,
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let task: Option<JoinHandle<_>> = self.all.get(index).map(|master| tokio::spawn(call(Arc::clone(master))));
        async move {
            let answer = match task {
                Some(task) => task.await.ok(),
                None => None,
            };
            let gone = || StoreError::new(ErrorKind::Unavailable, Applied::Maybe, Op::Open, "", "its task was stopped");
            (index, answer.unwrap_or_else(|| Err(gone())))
        }
    }

    /// Why too few answered, as one error. Of several kinds the one that a person has to mend is told.
    pub(super) fn too_few<T>(&self, op: Op, location: &str, heard: Heard<T>) -> StoreError {
        let count = heard.said.iter().flatten().count();
        let silent = Duration::as_millis(&Self::patience(self.op_timeout));
        let mut told = Vec::new();
        let (mut kind, mut applied) = (ErrorKind::Timeout, Applied::No);
        for (index, (said, error)) in heard.said.iter().zip(heard.errors).enumerate() {
            let place = self.all.get(index).map_or("", |master| master.location.as_str());
            match (said, error) {
                (Some(_), _) => applied = Applied::Maybe,
                (None, Some(error)) => {
                    kind = if rank(error.kind) > rank(kind) { error.kind } else { kind };
                    applied = if error.applied == Applied::Maybe { Applied::Maybe } else { applied };
                    told.push(format!("{place}: {}", error.message));
                }
                (None, None) => {
                    applied = Applied::Maybe;
                    told.push(format!("{place}: no answer within {silent} ms"));
                }
            }
        }
        let applied = if op.is_read() { Applied::No } else { applied };
        let (majority, masters) = (self.quorum.majority(), self.quorum.masters());
        let told = told.join("; ");
        let message = match masters {
            1 => told,
            _ => format!("{count} of {masters} masters answered alike, {majority} are needed; {told}"),
        };
        StoreError::new(kind, applied, op, location, message)
    }
}

/// What passes by itself is told last.
const fn rank(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Timeout => 0,
        ErrorKind::Unavailable => 1,
        ErrorKind::Overloaded => 2,
        ErrorKind::ReadOnly => 3,
        ErrorKind::Denied => 4,
        ErrorKind::Unsupported | ErrorKind::Unknown => 5,
        ErrorKind::Corrupt => 6,
        ErrorKind::Content => 7,
    }
}

impl<T> Heard<T> {
    fn nothing(masters: usize) -> Self {
        Self { said: (0..masters).map(|_| None).collect(), errors: (0..masters).map(|_| None).collect() }
    }

    fn note(&mut self, (index, answer): Reply<T>) {
        match answer {
            Ok(said) => put(&mut self.said, index, said),
            Err(error) => put(&mut self.errors, index, error),
        }
    }

    /// The answers alone.
    pub(super) fn answers(&self) -> impl Iterator<Item = &T> {
        self.said.iter().flatten()
    }
}

fn put<T>(places: &mut [Option<T>], index: usize, value: T) {
    if let Some(place) = places.get_mut(index) {
        *place = Some(value);
    }
}

async fn listen<T, F: Future<Output = Reply<T>>>(
    pending: &mut FuturesUnordered<F>,
    heard: &mut Heard<T>,
    enough: impl Fn(&[Option<T>]) -> bool,
) {
    while !enough(&heard.said) {
        let Some(reply) = pending.next().await else { return };
        heard.note(reply);
    }
}
