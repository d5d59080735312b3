//! The daemon as it stands before its node runs: what the port and the messages are made of.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use crate::cli::store_args::StoreAddress;
use crate::clock::Clock;
use crate::config::Config;
use crate::drive::Entropy;
use crate::exec::Launcher;
use crate::node::{Command, Health, Identity};
use crate::observe::Journal;
use crate::store::Store;

/// What services are made of: the daemon as it stands before its node runs.
#[cfg_attr(
    not(all(feature = "http", feature = "notify")),
    allow(dead_code, reason = "a service that is not built in asks for nothing")
)]
pub(super) struct Surroundings<'a> {
    /// Where the file is.
    pub(super) path: &'a Path,
    /// The file, without its jobs.
    pub(super) config: &'a Config,
    /// Where the store is.
    pub(super) address: &'a StoreAddress,
    /// This node.
    pub(super) identity: &'a Identity,
    /// The store itself.
    pub(super) store: &'a Arc<dyn Store>,
    /// The time.
    pub(super) clock: &'a Arc<dyn Clock>,
    /// Starts commands: those of jobs, and those of sinks, whose secrets it hides.
    pub(super) launcher: &'a Launcher,
    /// Random numbers.
    pub(super) entropy: &'a Entropy,
    /// How the node is.
    pub(super) health: &'a watch::Receiver<Health>,
    /// Where events are written, if anywhere.
    pub(super) journal: Option<&'a Arc<Journal>>,
    /// What the node is told.
    pub(super) commands: &'a mpsc::Sender<Command>,
}
