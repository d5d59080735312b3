//! Three notifiers over one Redis, each as a daemon has one, fed with events. A node that is killed is a task that is gone in the midst
//! of what it did.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cronward::clock::{Clock, SystemClock};
use cronward::config::{Environment, parse};
use cronward::event::Event;
use cronward::exec::{Launcher, Output};
use cronward::job::{JobSpec, Namespace, NodeName};
use cronward::metrics::Notifications;
use cronward::notify::{Figures, NoticeEar, Notifier, Setup};
use cronward::observe::Observer;
use cronward::schedule::Timetable;
use cronward::slot::{Slot, Token};
use cronward::store::StoreOptions;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::receiver::Receiver;
use crate::support::redis_server::RedisServer;
use crate::until;

/// Short, so that the death of a sender is soon noticed.
const LEASE: Duration = Duration::from_secs(4);
/// Within which a node claims what it has to tell.
const SPREAD: Duration = Duration::from_secs(4);

/// The notifier of one node.
struct Notifying {
    ear: Arc<NoticeEar>,
    figures: Arc<Figures>,
    running: JoinHandle<()>,
}

impl Notifying {
    /// How long the oldest message has waited that this node may still tell.
    fn oldest(&self) -> Duration {
        let sinks = self.figures.each(SystemClock.now().mono);
        sinks.into_iter().map(|sink| sink.oldest_pending).max().unwrap_or_default()
    }
}

struct Cluster {
    redis: RedisServer,
    runtime: tokio::runtime::Runtime,
    jobs: Vec<Arc<JobSpec>>,
    file: String,
    nodes: Vec<Option<Notifying>>,
}

fn file(url: &str, jobs: usize) -> String {
    let spread = SPREAD.as_secs();
    let sink = format!("[notify.hook]\ntype = \"webhook\"\nurl = \"{url}\"\nspread = \"{spread}s\"\n");
    let job =
        |number| format!("[jobs.j{number}]\nschedule = \"0 * * * *\"\ncommand = [\"false\"]\nnotify = [\"hook\"]\n");
    sink + &(0..jobs).map(job).collect::<String>()
}

impl Cluster {
    fn start(url: &str, jobs: usize) -> Self {
        let file = file(url, jobs);
        let (config, _) = parse("jobs.toml", file.clone(), &Environment::new(chrono::Utc::now())).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let jobs = config.jobs.into_values().map(Arc::new).collect();
        let mut cluster = Self { redis: RedisServer::start(), runtime, jobs, file, nodes: Vec::new() };
        (0..3).for_each(|_| cluster.join());
        cluster
    }

    fn join(&mut self) {
        let number = self.nodes.len() + 1;
        let (config, _) = parse("jobs.toml", self.file.clone(), &Environment::new(chrono::Utc::now())).unwrap();
        let store = self.runtime.block_on(cronward::store::open(&self.redis.url(), StoreOptions::default())).unwrap();
        let notifier = Notifier::new(Setup {
            store,
            clock: Arc::new(SystemClock),
            token: Token::from_bits((number as u128) << 64),
            launcher: Launcher::new(PathBuf::from(env!("CARGO_BIN_EXE_cronward")), Output::Capture),
            namespace: Namespace::default(),
            node: NodeName::new(&format!("n{number}")).unwrap(),
            lease: LEASE,
        });
        notifier.receivers().set(&config.notify, None).unwrap();
        let (ear, figures) = (notifier.ear(), notifier.figures());
        ear.plan(&self.jobs, "hash");
        let running = self.runtime.spawn(notifier.run(CancellationToken::new()));
        self.nodes.push(Some(Notifying { ear, figures, running }));
    }

    /// The slots' last attempts have failed: every node is answered so.
    fn fail(&self, jobs: std::ops::Range<usize>) {
        for spec in &self.jobs[jobs] {
            let slot: Slot = Timetable::of(spec).unwrap().slot_at(chrono::Utc::now()).unwrap();
            for node in self.nodes.iter().flatten() {
                node.ear.event(Some(&slot), &Event::AttemptsUsedUp { used: 3 });
            }
        }
    }

    /// No node has anything left that it may tell.
    fn has_told_all(&self) -> Option<()> {
        self.nodes.iter().flatten().all(|node| node.oldest().is_zero()).then_some(())
    }

    fn kill(&mut self, node: &str) {
        let number: usize = node.trim_start_matches('n').parse().unwrap();
        if let Some(node) = self.nodes[number - 1].take() {
            node.running.abort();
        }
    }
}

#[test]
fn of_three_nodes_one_tells_and_where_that_dies_before_it_has_recorded_it_another_does() {
    let receiver = Receiver::start();
    let mut cluster = Cluster::start(&receiver.url, 2);
    cluster.fail(0..1);
    until("the first message", || (receiver.got().len() == 1).then_some(()));
    receiver.hang(true);
    cluster.fail(1..2);
    let second = until("the second message", || receiver.got().get(1).cloned());
    cluster.kill(second["data"]["node"].as_str().unwrap());
    receiver.hang(false);
    let third = until("the message of another node", || receiver.got().get(2).cloned());
    assert_eq!(third["id"], second["id"], "it says that it is the same");
    assert_ne!(third["data"]["node"], second["data"]["node"]);
    until("nobody has anything left to tell", || cluster.has_told_all());
    assert_eq!(receiver.events(), ["j0 failed", "j1 failed", "j1 failed"]);
}

#[test]
fn a_store_that_is_away_meanwhile_loses_no_message() {
    let receiver = Receiver::start();
    let cluster = Cluster::start(&receiver.url, 1);
    cluster.redis.pause();
    cluster.fail(0..1);
    let is_overdue = |node: &Notifying| node.oldest() > SPREAD * 3 / 2;
    until("every node has tried", || cluster.nodes.iter().flatten().all(is_overdue).then_some(()));
    assert!(receiver.got().is_empty(), "nobody knows whether another node has told");
    cluster.redis.unpause();
    until("the message", || (receiver.events() == ["j0 failed"]).then_some(()));
    until("nobody has anything left to tell", || cluster.has_told_all());
    assert_eq!(receiver.events().len(), 1);
}
