//! Tells of every call: which operation, how long it took, how it went. It changes nothing.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::clock::Clock;
use crate::store::layer::{Call, Layer, Reply};
use crate::store::{Applied, ErrorKind, Op};

/// One call, as it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The operation.
    pub op: Op,
    /// From before the request was sent until the answer, or the lack of one.
    pub took: Duration,
    /// What kind of trouble it met, if it met any.
    pub error: Option<(ErrorKind, Applied)>,
}

/// Who is told. Called on the caller's task after each call: it should be quick.
pub trait Observer: Debug + Send + Sync + 'static {
    /// A call has ended.
    fn seen(&self, call: Seen);
}

/// Tells an observer of each call, with times by the given clock.
#[derive(Clone, Debug)]
pub struct Observe {
    observer: Arc<dyn Observer>,
    clock: Arc<dyn Clock>,
}

impl Observe {
    /// Tells `observer`.
    pub fn new(observer: Arc<dyn Observer>, clock: Arc<dyn Clock>) -> Self {
        Self { observer, clock }
    }
}

#[async_trait]
impl Layer for Observe {
    async fn around<'a, T: Send + 'a>(&'a self, op: Op, _location: &'a str, call: Call<'a, T>) -> Reply<T> {
        let asked = self.clock.now().mono;
        let reply = call().await;
        let took = self.clock.now().mono.since(asked);
        let error = reply.as_ref().err().map(|error| (error.kind, error.applied));
        self.observer.seen(Seen { op, took, error });
        reply
    }
}
