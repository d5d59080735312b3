//! The command line of the demo, and what ends it early.

use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};

use crate::cli::console::Console;
use crate::cli::demo::cluster::Cluster;
use crate::cli::demo::script::Script;
use crate::cli::demo::stage::Stage;
use crate::cli::demo::verdict;
use crate::cli::failure::Failure;
use crate::clock::{Clock, SystemClock};
use crate::drive::Entropy;
use crate::store::{self, EMBEDDED, StoreOptions};

/// Three nodes in one terminal for half a minute: a failure, a node killed, the takeover, and the checker's verdict
///
/// Real processes on an embedded store in a folder of their own, which goes with them. Nothing else is touched.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward demo")]
pub(crate) struct Args {
    /// Keep the folder with the store, the journals and the logs, and say where it is
    #[arg(long)]
    pub(crate) keep: bool,
    /// No colour; NO_COLOR in the environment does the same
    #[arg(long)]
    pub(crate) no_color: bool,
}

/// What a shell adds to the number of a signal.
const SIGNALLED: u8 = 128;

/// Plays it to its end, or until somebody interrupts: then too nothing is left behind.
pub(crate) async fn demo(args: &Args, console: &mut Console) -> Result<(), Failure> {
    let listen = |kind| signal(kind).map_err(|error| Failure::Internal(format!("cannot take signals: {error}")));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    let entropy = Entropy::from_system().map_err(|error| Failure::Internal(format!("no random source: {error}")))?;
    // Dropped last, whatever happens: it ends what it started.
    let mut cluster = Cluster::prepare(&entropy.token().to_string(), args.keep)?;
    if args.keep {
        console.note(format_args!("everything is kept in {}", cluster.folder().display()));
    }
    tokio::select! {
        played = play(&mut cluster, console) => played,
        _ = interrupt.recv() => Err(Failure::Child(SIGNALLED + 2)),
        _ = terminate.recv() => Err(Failure::Child(SIGNALLED + 15)),
    }
}

async fn play(cluster: &mut Cluster, console: &mut Console) -> Result<(), Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let url = format!("{EMBEDDED}:{}", cluster.store());
    let options = StoreOptions { op_timeout: std::time::Duration::from_secs(5), ..StoreOptions::default() };
    let opened = store::open(&url, options, Arc::clone(&clock)).await;
    let store = opened.map_err(|error| Failure::opening(error, true))?;
    let script = Script::beginning(clock.now().wall)?;
    cluster.start(&script.file(&cluster.store()))?;
    let kill = Stage::new(script, cluster, store, clock).play(console).await?;
    let report = verdict::judge(&cluster.nodes, cluster.folder(), &kill)?;
    verdict::tell(&report, console)
}
