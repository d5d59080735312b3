//! A link between one node and its server that can be spoilt.

use tokio::runtime::Runtime;

use crate::proxy::{Mode, Proxy};
use crate::wait;

/// A proxy with a runtime of its own: trials are not async.
pub(crate) struct Link {
    proxy: Proxy,
    runtime: Runtime,
}

impl Link {
    /// A link to the server at this port.
    pub(crate) fn to(port: u16) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let proxy = runtime.block_on(Proxy::before(port));
        Self { proxy, runtime }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.proxy.port())
    }

    /// The proxy's port.
    pub(crate) fn port(&self) -> u16 {
        self.proxy.port()
    }

    /// Leads to another server from now on.
    pub(crate) fn aim(&self, port: u16) {
        self.proxy.aim(port);
    }

    /// From now on, only for new connections.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn set_new(&self, mode: Mode) {
        self.proxy.set_new(mode);
    }

    /// From now on, for connections that stand and for new ones.
    pub(crate) fn set(&self, mode: Mode) {
        self.proxy.set(mode);
    }

    /// Waits until a request waits by [`Mode::HoldRequest`].
    pub(crate) fn holds_a_request(&self) {
        let held = async { tokio::time::timeout(wait::LIMIT, self.proxy.held()).await };
        self.runtime.block_on(held).expect("a request that is held up");
    }
}
