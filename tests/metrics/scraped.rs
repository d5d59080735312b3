//! A real Prometheus scrapes two real nodes on a real Redis, with the alerts as they are deployed: one fires when a job fails, and ends
//! when the job has succeeded.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::promtool;
use crate::support::ports::free_port;
use crate::support::redis_server::RedisServer;
use crate::support::server_process::ServerProcess;

/// Nothing here takes so long, on however busy a machine: a verdict comes 10 s after its slot, and is read within 10 s more.
const LIMIT: Duration = Duration::from_secs(240);

/// `flaky` fails until there is a file, and each of its slots has one attempt.
const JOBS: &str = r#"
[notify.script]
type = "exec"
command = "true"
spread = "0s"

[defaults]
slot = "tick"
max_attempts = 1
lease_ttl = "2s"

[jobs.flaky]
schedule = "*/5 * * * * *"
command = ["test", "-e", "mended"]
notify = ["script"]

[jobs.steady]
schedule = "*/5 * * * * *"
command = ["true"]
"#;

/// A Prometheus that scrapes two nodes.
struct Scraped {
    folder: TempDir,
    port: u16,
    nodes: [u16; 2],
    processes: [ServerProcess; 3],
    _redis: RedisServer,
}

impl Scraped {
    fn start() -> Self {
        let (redis, folder) = (RedisServer::start(), TempDir::with_prefix("cronward-scraped-").unwrap());
        std::fs::write(folder.path().join("jobs.toml"), JOBS).unwrap();
        let nodes = ["a", "b"].map(|name| (name, free_port()));
        let running = nodes.map(|(name, port)| node(folder.path(), name, port, &redis.url()));
        let (port, nodes) = (free_port(), nodes.map(|(_, port)| port));
        let prometheus = prometheus(folder.path(), port, &nodes);
        let [a, b] = running;
        Self { folder, port, nodes, processes: [a, b, prometheus], _redis: redis }
    }

    /// What Prometheus answers at a path of its API; none while it does not answer.
    fn ask(&self, path: &str) -> Option<Value> {
        serde_json::from_str(&answer(self.port, &format!("/api/v1/{path}"))?).ok()
    }

    /// The value of an expression that is one number; none where there is no such series.
    fn value(&self, expression: &str) -> Option<f64> {
        let query: String = url::form_urlencoded::byte_serialize(expression.as_bytes()).collect();
        let answer = self.ask(&format!("query?query={query}"))?;
        answer["data"]["result"][0]["value"][1].as_str()?.parse().ok()
    }

    /// The alerts that fire: the name of each, and its job.
    fn firing(&self) -> Option<Vec<(String, String)>> {
        let text = |alert: &Value, label: &str| alert["labels"][label].as_str().unwrap_or_default().to_owned();
        let alerts = self.ask("alerts")?["data"]["alerts"].as_array()?.clone();
        let firing = alerts.iter().filter(|alert| alert["state"] == "firing");
        Some(firing.map(|alert| (text(alert, "alertname"), text(alert, "job_name"))).collect())
    }

    /// Until it is so.
    fn becomes(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            let is_hopeless = begun.elapsed() > LIMIT || self.processes.iter().any(ServerProcess::has_ended);
            assert!(!is_hopeless, "{what}; what fires: {:?}; {}", self.firing(), self.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn logs(&self) -> String {
        let read = |name: &str| std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        ["prometheus.log", "a.log", "b.log"].map(|name| format!("{name}:\n{}", read(name))).join("\n")
    }
}

/// What is answered on a port; none while nothing is.
fn answer(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(LIMIT)).ok()?;
    // HTTP/1.0: the answer comes in one piece.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

fn node(folder: &Path, name: &str, port: u16, store: &str) -> ServerProcess {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cronward"));
    command.args(["run", "--node", name, "--store", store, "--listen", &format!("127.0.0.1:{port}")]);
    command.args(["--log-format", "json"]).current_dir(folder);
    ServerProcess::spawn_with_log(&mut command, "nothing", File::create(folder.join(format!("{name}.log"))).unwrap())
}

fn prometheus(folder: &Path, port: u16, nodes: &[u16]) -> ServerProcess {
    let alerts = format!("{}/deploy/prometheus/alerts.yaml", env!("CARGO_MANIFEST_DIR"));
    let mut file = format!("global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [\"{alerts}\"]\n");
    file.push_str("scrape_configs:\n  - job_name: cronward\n    static_configs:\n      - targets:\n");
    nodes.iter().for_each(|node| writeln!(file, "          - 127.0.0.1:{node}").unwrap());
    std::fs::write(folder.join("prometheus.yml"), file).unwrap();
    let mut command = Command::new("prometheus");
    command.args(["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--log.level=warn"]);
    command.arg(format!("--web.listen-address=127.0.0.1:{port}")).current_dir(folder);
    ServerProcess::spawn_with_log(&mut command, "prometheus", File::create(folder.join("prometheus.log")).unwrap())
}

#[test]
fn an_alert_fires_for_the_job_that_fails_alone_and_ends_when_it_has_succeeded() {
    let scraped = Scraped::start();
    let failing = || ("CronwardJobFailing".to_owned(), "flaky".to_owned());
    scraped.becomes("both nodes are scraped, and reach their store", |all| {
        all.value("sum(up)") == Some(2.0) && all.value("sum(cronward_store_up)") == Some(2.0)
    });
    scraped.becomes("the failing job is told, and no other", |all| all.firing() == Some(vec![failing()]));
    let runs = |job: &str, result: &str| {
        let labels = format!("job_name=\"{job}\",result=\"{result}\"");
        // The last that was scraped: a scrape that a busy machine lets fail leaves a node out for a moment.
        scraped.value(&format!("sum(last_over_time(cronward_runs_total{{{labels}}}[10m]))"))
    };
    assert!(runs("flaky", "failure") > Some(0.0) && runs("steady", "success") > Some(0.0));
    assert_eq!((runs("flaky", "success"), runs("steady", "failure")), (Some(0.0), Some(0.0)));
    scraped.becomes("a failure is told", |all| {
        all.value("sum(cronward_notifications_total{result=\"sent\"})") > Some(0.0)
    });
    for node in scraped.nodes {
        let text = answer(node, "/metrics").unwrap();
        for series in ["cronward_http_requests_total{", "cronward_http_streams{", "cronward_notifications_total{"] {
            assert!(text.lines().any(|line| line.starts_with(series)), "{series}: {text}");
        }
        assert_eq!(promtool::on_metrics(&text), None, "{text}");
    }
    File::create(scraped.folder.path().join("mended")).unwrap();
    scraped.becomes("the mended job has succeeded", |_| runs("flaky", "success") > Some(0.0));
    scraped.becomes("nothing is told any more", |all| all.firing() == Some(vec![]));
}
