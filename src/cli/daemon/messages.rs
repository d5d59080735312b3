//! The daemon's messages: from the file's sinks to a notifier that runs beside the node.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::surroundings::Surroundings;
use crate::cli::failure::Failure;
use crate::config::Config;
#[cfg(feature = "http")]
use crate::notify::Figures;
use crate::notify::{LEASE, NoticeEar, Notifier, Receivers, Setup, use_ring};

/// Its last messages have five seconds; whoever is slower is not waited for.
const LONGEST_STOP: Duration = Duration::from_secs(7);

/// A notifier that has not begun.
pub(super) struct Messenger {
    notifier: Notifier,
    receivers: Receivers,
}

/// One that runs.
pub(super) struct RunningMessenger {
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl Messenger {
    /// Reads the secrets of the file's sinks.
    pub(super) fn prepare(around: &Surroundings<'_>) -> Result<Self, Failure> {
        use_ring();
        let notifier = Notifier::new(Setup {
            store: Arc::clone(around.store),
            clock: Arc::clone(around.clock),
            token: around.entropy.token(),
            launcher: around.launcher.clone(),
            namespace: around.address.options.namespace.clone(),
            node: around.identity.name.clone(),
            lease: LEASE,
        });
        let messenger = Self { receivers: notifier.receivers(), notifier };
        messenger.taking()(around.config).map_err(Failure::Configuration)?;
        Ok(messenger)
    }

    pub(super) fn ear(&self) -> Arc<NoticeEar> {
        self.notifier.ear()
    }

    #[cfg(feature = "http")]
    pub(super) fn figures(&self) -> Arc<Figures> {
        self.notifier.figures()
    }

    /// Takes the sinks of a file, with the secrets that are in their files now.
    pub(super) fn taking(&self) -> impl Fn(&Config) -> Result<(), String> + Send + Sync + 'static {
        let receivers = self.receivers.clone();
        move |config| receivers.set(&config.notify, config.http.as_ref().and_then(|http| http.public_url.clone()))
    }

    pub(super) fn start(self) -> RunningMessenger {
        let stop = CancellationToken::new();
        let running = tokio::spawn(self.notifier.run(stop.clone()));
        RunningMessenger { stop, running }
    }
}

impl RunningMessenger {
    /// Lets the last messages out.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        let _ = tokio::time::timeout(LONGEST_STOP, self.running).await;
    }
}
