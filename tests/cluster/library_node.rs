//! A node as a Rust service would build it: this test binary, started again, with slots of a fixed length, which
//! `jobs.toml` has no word for.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use cronward::clock::{Clock, SystemClock};
use cronward::drive::Entropy;
use cronward::exec::{Launcher, Output};
use cronward::job::{JobName, JobSpec, NodeName, Program};
use cronward::node::{Health, Identity, Node, Plan, Ports};
use cronward::observe::LogObserver;
use cronward::observe::logging::{self, LogFormat};
use cronward::slot::Period;
use cronward::store::StoreOptions;
use cronward::store::redis::RedisStore;
use tokio::sync::{mpsc, watch};

use crate::daemon::Daemon;
use crate::place::Place;

/// Set for a process that is to be a node: its name.
const NAME: &str = "CLUSTER_TEST_NODE";
const STORE: &str = "CLUSTER_TEST_STORE";

/// Length of its slots.
pub(crate) const SLOT: Duration = Duration::from_secs(2);
/// Its job.
pub(crate) const JOB: &str = "fixed";

/// Starts such a node as a process of its own.
pub(crate) fn start(place: &Place, name: &str, store: &str) -> Daemon {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env(NAME, name).env(STORE, store).env("CRONWARD_LOG", "info,cronward=debug");
    command.current_dir(place.path()).stdin(Stdio::null()).stdout(Stdio::null());
    Daemon::spawn(command, name, place.file(&format!("{name}.log")))
}

/// Whether this process is to be a node.
pub(crate) fn is_asked_for() -> bool {
    std::env::var_os(NAME).is_some()
}

/// Is a node until it is killed.
pub(crate) fn run() {
    logging::init(LogFormat::Json).unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(serve());
}

async fn serve() {
    let store = RedisStore::open(&std::env::var(STORE).unwrap(), StoreOptions::default()).await.unwrap();
    let ports = Ports {
        store: Arc::new(store),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(Entropy::from_system().unwrap()),
        launcher: Launcher::new(PathBuf::from(env!("CARGO_BIN_EXE_cronward")), Output::Capture),
        observer: Arc::new(LogObserver),
    };
    let identity = Identity {
        name: NodeName::new(&std::env::var(NAME).unwrap()).unwrap(),
        instance: ports.entropy.token().to_string(),
        labels: [].into(),
        started_at: SystemClock.now().wall,
    };
    let plan = Plan { jobs: vec![Arc::new(job())], ..Plan::default() };
    let (_commands, inbox) = mpsc::channel(1);
    let (health, _watched) = watch::channel(Health::default());
    Node::new(identity, ports, plan).unwrap().run(inbox, health).await.unwrap();
}

fn job() -> JobSpec {
    let command = ["/bin/sh", "record.sh", "0.1", "0"].map(str::to_owned).to_vec();
    let mut job = JobSpec::new(JobName::new(JOB).unwrap(), "*/2 * * * * *", Program::Direct(command));
    job.period = Period::Fixed(SLOT);
    job.policy.lease_ttl = crate::jobs::LEASE_TTL;
    job
}
