//! How long the store takes, and how it fails: counted around each of its operations, at no call more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;

use crate::clock::Clock;
use crate::error::{ErrorKind, Op, Reply};
use crate::metrics::histogram::{Histogram, OF_CALLS};
use crate::store::layer::{Call, Layer};

/// Kinds of errors, each at the place of its counter.
const KINDS: [ErrorKind; 8] = [
    ErrorKind::Unavailable,
    ErrorKind::Timeout,
    ErrorKind::Overloaded,
    ErrorKind::Denied,
    ErrorKind::ReadOnly,
    ErrorKind::Corrupt,
    ErrorKind::Unsupported,
    ErrorKind::Content,
];

/// What is counted of one operation.
#[derive(Debug, Default)]
pub(super) struct OpFigures {
    durations: OnceLock<Box<Histogram>>,
    errors: [AtomicU64; KINDS.len()],
}

/// What is counted of the store.
#[derive(Debug, Default)]
pub(super) struct StoreFigures {
    /// Each at its place in [`Op::ALL`].
    ops: [OpFigures; Op::ALL.len()],
}

impl StoreFigures {
    fn tell(&self, op: Op, took: Duration, failed: Option<ErrorKind>) {
        let Some((_, figures)) = Op::ALL.iter().zip(&self.ops).find(|(known, _)| **known == op) else { return };
        figures.durations.get_or_init(Box::default).add(&OF_CALLS, took);
        if let Some(kind) = failed
            && let Some((_, count)) = KINDS.iter().zip(&figures.errors).find(|(known, _)| **known == kind)
        {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The operations that were called.
    pub(super) fn called(&self) -> impl Iterator<Item = (Op, &Histogram)> {
        Op::ALL.iter().zip(&self.ops).filter_map(|(op, figures)| Some((*op, &**figures.durations.get()?)))
    }

    /// The errors that there were.
    pub(super) fn errors(&self) -> impl Iterator<Item = (Op, ErrorKind, u64)> {
        let of_op = |(op, figures): (&Op, &'_ OpFigures)| {
            let counts = figures.errors.each_ref().map(|count| count.load(Ordering::Relaxed));
            let op = *op;
            KINDS.into_iter().zip(counts).filter(|(_, count)| *count > 0).map(move |(kind, count)| (op, kind, count))
        };
        Op::ALL.iter().zip(&self.ops).flat_map(of_op)
    }
}

/// A layer that counts and times each operation.
#[derive(Debug)]
pub struct Observe {
    pub(super) figures: Arc<StoreFigures>,
    pub(super) clock: Arc<dyn Clock>,
}

#[async_trait]
impl Layer for Observe {
    async fn around<'a, T: Send + 'a>(&'a self, op: Op, _location: &'a str, call: Call<'a, T>) -> Reply<T> {
        let asked = self.clock.now().mono;
        let reply = call().await;
        let took = self.clock.now().mono.since(asked);
        self.figures.tell(op, took, reply.as_ref().err().map(|error| error.kind));
        reply
    }
}
