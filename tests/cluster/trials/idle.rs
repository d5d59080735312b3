//! A cluster with nothing to do.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use cronward::config::{Environment, parse};
use cronward::store::{JobEntry, StoreOptions};

use crate::daemon::Daemon;
use crate::place::Place;
use crate::redis_server::RedisServer;
use crate::{jobs, wait};

const JOBS: usize = 1_000;
/// Between two heartbeats of a node.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// Two nodes, two heartbeats each.
const WATCHED: u64 = 4;

pub(super) fn a_thousand_idle_jobs_cost_the_store_heartbeats_only(place: &Place) {
    let server = RedisServer::start();
    place.jobs(&jobs::file(&file()));
    make_known(&jobs::file(&file()), &server.url());
    let nodes = place.nodes(["a", "b"], &server.url());
    wait::until_true("the jobs are registered", || server.number(&["HLEN", "cronward:default:jobs"]) == 1_000);
    settle(&server);
    let begun = Instant::now();
    server.command(&["CONFIG", "RESETSTAT"]);
    wait::until_true("each node has sent two heartbeats", || server.calls("hset") >= WATCHED);
    let info = server.text(&["INFO", "commandstats"]).unwrap();
    let (scripts, periods) = (server.calls("evalsha"), begun.elapsed().as_secs() / HEARTBEAT.as_secs());
    // Two nodes, a heartbeat each ten seconds: one more than whole periods have passed. After each sixth a node looks whether another
    // one goes by its name.
    assert!(scripts <= 2 * (periods + 1) + 2 * (periods / 6 + 1), "{scripts} in {periods} periods: {info}");
    // What the heartbeat's script does, what keeps the link for hints, and this trial's own question.
    let expected = ["evalsha", "time", "hget", "hset", "hdel", "hgetall", "hlen", "ping", "config|resetstat", "info"];
    let calls = info.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split(':').next());
    let others: Vec<_> = calls.filter(|command| !expected.contains(command)).collect();
    assert!(others.is_empty(), "{others:?} in {info}");
    assert_eq!(place.runs().len(), 0);
    assert!(nodes.iter().map(Daemon::text).all(|log| !log.contains("claim answered")));
}

/// Registers the jobs as known since yesterday: those of a store that just learnt of them are registered once more after a while.
fn make_known(file: &str, url: &str) {
    let now = chrono::Utc::now();
    let (config, _) = parse("jobs.toml", file.to_owned(), &Environment::new(now)).unwrap();
    let since = now - chrono::TimeDelta::days(1);
    let entries: Vec<JobEntry> = config.jobs.values().map(|spec| JobEntry::of(spec, since)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = cronward::store::open(url, StoreOptions::default()).await.unwrap();
        store.register(&entries).await.unwrap();
    });
}

fn file() -> String {
    let when = jobs::far_away();
    let mut text = String::new();
    for n in 0..JOBS {
        let _ = write!(text, "{}", jobs::recorded(&format!("job-{n}"), &when, 0.1, 0));
    }
    text
}

/// Waits until only heartbeats are left: no script for three seconds in a row, between two of them.
fn settle(server: &RedisServer) {
    let mut last = (server.calls("evalsha"), 0);
    wait::until_true("the nodes have settled", || {
        wait::let_pass(Duration::from_millis(500));
        let calls = server.calls("evalsha");
        last = if calls == last.0 { (calls, last.1 + 1) } else { (calls, 0) };
        last.1 >= 6
    });
}
