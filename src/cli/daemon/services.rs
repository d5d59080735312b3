//! What runs beside the node: the port, and messages to people. Each is there where it was built in.

use std::sync::Arc;

#[cfg(feature = "notify")]
use super::messages::{Messenger, RunningMessenger};
#[cfg(feature = "http")]
use super::port::{Port, Serving};
use super::reload::{Also, Taking};
use super::surroundings::Surroundings;
use crate::cli::failure::Failure;
use crate::observe::Observer;
use crate::store::Store;
#[cfg(feature = "http")]
use crate::web::Listening;

/// Services that have not begun.
pub(super) struct Services {
    #[cfg(feature = "notify")]
    messenger: Messenger,
    #[cfg(feature = "http")]
    port: Option<Port>,
}

/// Services that run.
pub(super) struct RunningServices {
    #[cfg(feature = "notify")]
    messenger: RunningMessenger,
    #[cfg(feature = "http")]
    listening: Option<Listening>,
}

#[cfg_attr(
    not(all(feature = "http", feature = "notify")),
    allow(
        clippy::unnecessary_wraps,
        clippy::unused_self,
        unused_mut,
        unused_variables,
        reason = "a service that is not built in asks for nothing"
    )
)]
impl Services {
    /// Reads the secrets of the file's sinks; opens no socket.
    pub(super) fn prepare(
        around: &Surroundings<'_>,
        #[cfg(feature = "http")] serving: Option<Serving>,
    ) -> Result<Self, Failure> {
        #[cfg(feature = "notify")]
        let messenger = Messenger::prepare(around)?;
        #[cfg(all(feature = "http", feature = "notify"))]
        let serving = serving.map(|serving| serving.counting(messenger.figures()));
        Ok(Self {
            #[cfg(feature = "notify")]
            messenger,
            #[cfg(feature = "http")]
            port: serving.map(|serving| serving.open(around)),
        })
    }

    /// Who hears what happens on this node.
    pub(super) fn observers(&self) -> Vec<Arc<dyn Observer>> {
        let mut observers: Vec<Arc<dyn Observer>> = Vec::new();
        #[cfg(feature = "http")]
        observers.extend(self.port.iter().flat_map(Port::observers));
        #[cfg(feature = "notify")]
        observers.push(self.messenger.ear());
        observers
    }

    /// The same store, whose calls are counted where figures are shown.
    pub(super) fn around(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        #[cfg(feature = "http")]
        if let Some(port) = &self.port {
            return port.around(store);
        }
        store
    }

    /// What is read anew with the file, whatever is wrong with that.
    pub(super) fn rereading(&self) -> Option<Also> {
        #[cfg(feature = "http")]
        if let Some(port) = &self.port {
            return Some(Arc::new(port.rereading()));
        }
        None
    }

    /// Who takes more of the file than its jobs, or refuses it.
    pub(super) fn taking(&self) -> Option<Taking> {
        #[cfg(feature = "notify")]
        return Some(Arc::new(self.messenger.taking()));
        #[cfg(not(feature = "notify"))]
        None
    }

    /// Begins.
    pub(super) fn start(self) -> RunningServices {
        RunningServices {
            #[cfg(feature = "notify")]
            messenger: self.messenger.start(),
            #[cfg(feature = "http")]
            listening: self.port.map(Port::start),
        }
    }
}

#[cfg_attr(
    not(any(feature = "http", feature = "notify")),
    allow(clippy::unused_async, reason = "a service that is not built in is not waited for")
)]
impl RunningServices {
    /// Ends, in bounded time; the last messages go out first.
    pub(super) async fn stop(self) {
        #[cfg(feature = "notify")]
        self.messenger.stop().await;
        #[cfg(feature = "http")]
        if let Some(listening) = self.listening {
            listening.stop().await;
        }
    }
}
