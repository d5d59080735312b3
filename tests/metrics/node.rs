//! Real nodes with a store in memory: what their metrics say of runs, of a node that dies, of an operator, and of a store that does
//! not answer.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cronward::clock::{Clock, SystemClock};
use cronward::drive::Entropy;
use cronward::exec::{Launcher, Output};
use cronward::job::{JobName, JobSelection, JobSpec, Namespace, NodeName, Program};
use cronward::metrics::{Metrics, Setting};
use cronward::node::{Command, Health, Identity, Node, Plan, Ports};
use cronward::schedule::Timetable;
use cronward::slot::{Audit, Period};
use cronward::store::layer::{Call, Layer, Layered, Reply};
use cronward::store::memory::MemoryStore;
use cronward::store::{Applied, ErrorKind, Op, Store, StoreError, StoreOptions};
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

use crate::bench::{text, value};

/// Nothing here takes so long, on however busy a machine.
const LIMIT: Duration = Duration::from_secs(45);

/// Lets no call through while it is on.
#[derive(Clone, Debug, Default)]
struct Outage(Arc<AtomicBool>);

#[async_trait]
impl Layer for Outage {
    async fn around<'a, T: Send + 'a>(&'a self, op: Op, location: &'a str, call: Call<'a, T>) -> Reply<T> {
        if self.0.load(Ordering::Relaxed) {
            return Err(StoreError::new(ErrorKind::Unavailable, Applied::No, op, location, "switched off"));
        }
        call().await
    }
}

/// A store for some nodes.
struct Cluster {
    memory: MemoryStore,
    jobs: Vec<JobSpec>,
}

/// A node that runs until it is dropped, which kills its commands: it dies.
struct Running {
    metrics: Arc<Metrics>,
    outage: Outage,
    _commands: mpsc::Sender<Command>,
    _tasks: [AbortOnDropHandle<()>; 2],
}

impl Cluster {
    fn of(jobs: Vec<JobSpec>) -> Self {
        Self { memory: MemoryStore::new(StoreOptions::default(), Arc::new(SystemClock)), jobs }
    }

    fn node(&self, name: &str) -> Running {
        let outage = Outage::default();
        let (health, watched) = watch::channel(Health::default());
        let metrics = Metrics::new(Setting {
            namespace: Namespace::default(),
            jobs: JobSelection::All,
            clock: Arc::new(SystemClock),
            health: watched,
            journal: None,
            notifications: None,
        });
        let store = metrics.around(Arc::new(Layered::new(Arc::new(self.memory.clone()), outage.clone())));
        let ports = Ports {
            store: Arc::clone(&store),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(Entropy::from_system().unwrap()),
            launcher: Launcher::new(PathBuf::from(env!("CARGO_BIN_EXE_cronward")), Output::Capture),
            observer: Arc::<Metrics>::clone(&metrics),
        };
        let identity = Identity {
            name: NodeName::new(name).unwrap(),
            instance: ports.entropy.token().to_string(),
            labels: [].into(),
            started_at: SystemClock.now().wall,
        };
        let jobs = self.jobs.iter().cloned().map(Arc::new).collect();
        let plan = Plan { jobs, config_hash: "c0ffee".to_owned(), ..Plan::default() };
        let (commands, inbox) = mpsc::channel(1);
        let node = Node::new(identity, ports, plan).unwrap();
        let following = Arc::clone(&metrics);
        let tasks = [
            tokio::spawn(async move { node.run(inbox, health).await.unwrap() }),
            tokio::spawn(async move { following.follow(&*store).await }),
        ];
        Running { metrics, outage, _commands: commands, _tasks: tasks.map(AbortOnDropHandle::new) }
    }
}

impl Running {
    /// The value of a series; behind the name its labels but for the namespace.
    fn value(&self, name: &str, labels: &str) -> f64 {
        let text = text(&self.metrics, &SystemClock);
        let labels = if labels.is_empty() { String::new() } else { format!(",{labels}") };
        let found = value(&text, &format!("cronward_{name}{{namespace=\"default\"{labels}}}"));
        found.map_or(f64::NAN, |found| found.parse().unwrap())
    }

    /// Until the series has at least this value.
    async fn reaches(&self, name: &str, labels: &str, least: f64) {
        self.becomes(name, labels, &format!("at least {least}"), |value| value >= least).await;
    }

    async fn becomes(&self, name: &str, labels: &str, what: &str, is_so: impl Fn(f64) -> bool) {
        let begun = Instant::now();
        while !is_so(self.value(name, labels)) {
            let text = text(&self.metrics, &SystemClock);
            assert!(begun.elapsed() < LIMIT, "{name} {labels} is not {what}:\n{text}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn job(name: &str, command: &[&str], period: Duration) -> JobSpec {
    let words = command.iter().map(|word| (*word).to_owned()).collect();
    let mut job = JobSpec::new(JobName::new(name).unwrap(), "* * * * * *", Program::Direct(words));
    job.period = Period::Fixed(period);
    job.policy.lease_ttl = Duration::from_secs(1);
    job.policy.retry.delay = Duration::from_millis(100);
    job.policy.max_attempts = 2;
    job
}

/// One slot for as long as a test lasts.
const LONG: Duration = Duration::from_secs(100 * 86_400);

#[tokio::test(flavor = "multi_thread")]
async fn runs_and_verdicts_of_a_real_node_are_told() {
    let short = Duration::from_secs(2);
    let jobs = vec![job("good", &["true"], short), job("bad", &["false"], short), job("slow", &["sleep", "60"], LONG)];
    let node = Cluster::of(jobs).node("a");
    node.reaches("job_running", r#"job_name="slow""#, 1.0).await;
    node.reaches("runs_total", r#"job_name="good",result="success""#, 2.0).await;
    node.reaches("runs_total", r#"job_name="bad",result="failure""#, 2.0).await;
    node.reaches("slots_total", r#"job_name="good",verdict="done""#, 2.0).await;
    node.reaches("slots_total", r#"job_name="bad",verdict="failed""#, 1.0).await;
    node.reaches("run_duration_seconds_count", r#"job_name="good""#, 2.0).await;
    node.reaches("start_delay_seconds_count", "", 3.0).await;
    node.reaches("claims_total", r#"result="claimed""#, 5.0).await;
    node.reaches("store_op_duration_seconds_count", r#"op="claim""#, 5.0).await;
    node.reaches("store_up", "", 1.0).await;
    node.reaches("planner_beat_timestamp_seconds", "", SystemClock.now().wall.timestamp() as f64 - 5.0).await;
    node.reaches("config_info", r#"config_hash="c0ffee""#, 1.0).await;
    // From the store, for those who scrape.
    node.reaches("job_last_success_timestamp_seconds", r#"job_name="good""#, 1.0).await;
    node.reaches("job_failing_since_timestamp_seconds", r#"job_name="bad""#, 1.0).await;
    node.reaches("nodes", r#"state="alive""#, 1.0).await;
    assert_eq!(node.value("job_failing_since_timestamp_seconds", r#"job_name="good""#), 0.0);
    assert_eq!(node.value("overlaps_total", r#"job_name="slow""#), 0.0);
    assert_eq!(node.value("store_errors_total", r#"op="claim",kind="unavailable""#).to_string(), "NaN", "none");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_takes_over_tells_so_and_so_does_one_whose_lease_is_taken() {
    let mut long = job("long", &["sleep", "60"], LONG);
    // Both nodes live in this process: where that stands still for a lease, the second takes over from one that is alive.
    long.policy.lease_ttl = Duration::from_secs(8);
    long.policy.max_attempts = 3;
    long.policy.on_lost = cronward::OnLost::Kill;
    let cluster = Cluster::of(vec![long.clone()]);
    let of_long = r#"job_name="long""#;
    let first = cluster.node("a");
    first.reaches("job_running", of_long, 1.0).await;
    assert_eq!(first.value("job_attempts", of_long), 1.0);
    let second = cluster.node("b");
    second.reaches("claims_total", r#"result="held""#, 1.0).await;
    assert_eq!(second.value("job_running", of_long), 0.0);
    drop(first);
    second.reaches("job_running", of_long, 1.0).await;
    assert_eq!(second.value("job_attempts", of_long), 2.0);
    assert_eq!(second.value("claims_total", r#"result="claimed""#), 1.0);
    second.reaches("renewals_total", r#"result="renewed""#, 1.0).await;
    let slot = Timetable::of(&long).unwrap().slot_at(SystemClock.now().wall).unwrap();
    let [verb, who, host, why] = ["unlock", "o", "h", "w"].map(str::to_owned);
    let audit = Audit { verb, who, host, why, at: SystemClock.now().wall };
    cluster.memory.unlock(&slot, &audit).await.unwrap();
    second.reaches("renewals_total", r#"result="lost""#, 1.0).await;
    second.reaches("overlaps_total", of_long, 1.0).await;
    second.reaches("runs_total", r#"job_name="long",result="lost_lease""#, 1.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_does_not_answer_is_told_until_it_does() {
    let node = Cluster::of(vec![job("good", &["true"], Duration::from_secs(2))]).node("a");
    node.reaches("runs_total", r#"job_name="good",result="success""#, 1.0).await;
    node.reaches("store_up", "", 1.0).await;
    node.outage.0.store(true, Ordering::Relaxed);
    node.becomes("store_up", "", "0", |up| up == 0.0).await;
    node.reaches("store_errors_total", r#"op="heartbeat",kind="unavailable""#, 1.0).await;
    node.becomes("nodes", r#"state="alive""#, "left out", f64::is_nan).await;
    node.outage.0.store(false, Ordering::Relaxed);
    node.reaches("store_up", "", 1.0).await;
}
