//! A real node in this process: the loop, its planner and its timers as the daemon has them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cronward::clock::{Clock, SystemClock};
use cronward::drive::Entropy;
use cronward::event::Event;
use cronward::exec::{Launcher, Output};
use cronward::job::{JobSpec, NodeName};
use cronward::node::{Command, Health, Identity, Node, NodeError, Plan, Ports};
use cronward::observe::Observer;
use cronward::slot::Slot;
use cronward::store::Store;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// The program: what is measured as a process, and the keeper of commands.
pub(crate) fn program() -> PathBuf {
    std::env::var_os("CRONWARD_BENCH_PROGRAM").map_or_else(|| env!("CARGO_BIN_EXE_cronward").into(), PathBuf::from)
}

/// A running node.
pub(crate) struct Rig {
    commands: mpsc::Sender<Command>,
    health: watch::Receiver<Health>,
    node: JoinHandle<Result<(), NodeError>>,
}

impl Rig {
    /// Starts a node and waits until it has reached the store.
    pub(crate) async fn start(name: &str, store: Arc<dyn Store>, jobs: Vec<JobSpec>) -> Self {
        Self::heard_by(Arc::new(Quiet), name, store, jobs).await
    }

    /// The same of a node whose events somebody hears.
    pub(crate) async fn heard_by(
        observer: Arc<dyn Observer>,
        name: &str,
        store: Arc<dyn Store>,
        jobs: Vec<JobSpec>,
    ) -> Self {
        let identity = Identity {
            name: NodeName::new(name).unwrap(),
            instance: name.to_owned(),
            labels: std::collections::BTreeMap::new(),
            started_at: SystemClock.now().wall,
        };
        let ports = Ports {
            store,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(Entropy::from_system().unwrap()),
            launcher: Launcher::new(program(), Output::Capture),
            observer,
        };
        let plan = Plan { jobs: jobs.into_iter().map(Arc::new).collect(), ..Plan::default() };
        let node = Node::new(identity, ports, plan).unwrap();
        let (commands, inbox) = mpsc::channel(8);
        let (sender, mut health) = watch::channel(Health::default());
        let node = tokio::spawn(node.run(inbox, sender));
        health.wait_for(|health| health.store_up).await.unwrap();
        Self { commands, health, node }
    }

    /// Lets it work for so long.
    pub(crate) async fn work(&self, span: Duration) {
        tokio::time::sleep(span).await;
        assert!(self.health.borrow().store_up, "the store is away");
    }

    /// Stops it.
    pub(crate) async fn stop(self) {
        self.commands.send(Command::Shutdown(Duration::from_secs(5))).await.unwrap();
        self.node.await.unwrap().unwrap();
    }
}

/// Hears nothing: what is measured is the node, not a log. Trouble is told.
#[derive(Debug)]
struct Quiet;

impl Observer for Quiet {
    fn event(&self, slot: Option<&Slot>, event: &Event) {
        match (slot, event) {
            (Some(slot), Event::StoreFailed { error, .. }) => eprintln!("  trouble at {slot}: {error}"),
            (_, Event::StoreLost { .. } | Event::Fault { .. }) => eprintln!("  trouble: {event:?}"),
            _ => {}
        }
    }
}
