//! Hints on their way to those who listen in this process: a task hears them from the server, from the first subscription
//! until the store is dropped. Nothing depends on a hint, so nothing here is an error.

use std::future::Future;
use std::sync::{Mutex, PoisonError};

use tokio::sync::broadcast;
use tokio_util::task::AbortOnDropHandle;

use crate::store::{Wake, Wakeups};

/// Hints that a receiver may lag behind by before it has lost some.
const HINTS: usize = 1_024;

/// Those who listen, and the task that hears for them.
#[derive(Debug)]
pub(in crate::store) struct Hints {
    teller: Teller,
    task: Mutex<Option<AbortOnDropHandle<()>>>,
}

/// Tells those who listen here, and nobody else.
#[derive(Clone, Debug)]
pub(in crate::store) struct Teller(broadcast::Sender<Wake>);

impl Teller {
    pub(in crate::store) fn tell(&self, wake: Wake) {
        // Nobody may be listening just now.
        let _ = self.0.send(wake);
    }
}

impl Default for Hints {
    fn default() -> Self {
        Self { teller: Teller(broadcast::Sender::new(HINTS)), task: Mutex::default() }
    }
}

impl Hints {
    /// Hints from now on. `listen` is begun where nobody hears yet. Outside of a runtime there are none.
    pub(in crate::store) fn subscribe<L>(&self, listen: impl FnOnce(Teller) -> L) -> Wakeups
    where
        L: Future<Output = ()> + Send + 'static,
    {
        let hints = self.teller.0.subscribe();
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && task.as_ref().is_none_or(AbortOnDropHandle::is_finished)
        {
            *task = Some(AbortOnDropHandle::new(runtime.spawn(listen(self.teller.clone()))));
        }
        hints
    }

    #[cfg(feature = "zookeeper")]
    pub(in crate::store) fn tell(&self, wake: Wake) {
        self.teller.tell(wake);
    }
}
