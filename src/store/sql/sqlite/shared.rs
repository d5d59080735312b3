//! What the calls of one store share: the two connections, whose records these are, who is told.

use std::time::Duration;

use tokio::sync::broadcast;

use super::lane::{Connector, Lane};
use crate::store::Wake;
use crate::store::sql::slots::Scope;

/// Shared by the store and its [`turn`](super::turn)s.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) connector: Connector,
    pub(super) writer: Lane,
    pub(super) reader: Lane,
    pub(super) scope: Scope,
    /// For one call.
    pub(super) limit: Duration,
    /// For messages.
    pub(super) location: String,
    pub(super) wakes: broadcast::Sender<Wake>,
}

impl Shared {
    /// Tells this process of a change that is written.
    pub(super) fn tell(&self, wake: Wake) {
        // No receiver is no fault: nobody waits.
        let _ = self.wakes.send(wake);
    }
}
