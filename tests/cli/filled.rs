//! An SQLite store in which things have happened, filled through the library as nodes would.

use std::time::Duration;

use chrono::{DateTime, Utc};
use cronward::job::{JobName, NodeName};
use cronward::schedule::Timetable;
use cronward::slot::{Lease, Outcome, OutputTail, RunRecord, Slot, Token, Trigger};
use cronward::store::{self, Claim, ClaimRequest, JobEntry, JobOrigin, NodeReport, Store, StoreOptions};

use crate::program::{Ended, Place};

/// Longer than any test runs: a slot of about eleven months, so that no test ever meets the end of one. Each begins some
/// minutes after a full hour until the year 2080, so that all their keys are of one length and the tables of one width: the number
/// of minutes is prime to 60, and the next that begins at a full hour is number 120.
const PERIOD: &str = "28948620s";

/// A folder to run in, and a filled store: a file in it, or wherever a url says.
pub(crate) struct Filled {
    place: Place,
    url: String,
    /// The key that the current slot of each job has.
    pub(crate) key: String,
}

impl Filled {
    /// - `billing`: attempt 1 failed on node a, attempt 2 runs on node b.
    /// - `mail`: all three attempts failed, the last with a long and hostile output.
    /// - `push`: done.
    /// - `quiet`: nothing happened.
    pub(crate) fn new() -> Self {
        Self::at(None)
    }

    /// The same in an empty store at this url; in a file where there is none.
    pub(crate) fn at(url: Option<String>) -> Self {
        let place = Place::new();
        let url = url.unwrap_or_else(|| format!("sqlite:{}", place.path().join("cronward.sqlite").display()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let key = runtime.block_on(async {
            let store = store::open(&url, patient()).await.unwrap();
            fill(&*store).await
        });
        Self { place, url, key }
    }

    /// Lets a node tell that it is alive.
    pub(crate) fn hear_of(&self, name: &str) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = store::open(&self.url, patient()).await.unwrap();
            let (now, _) = store.inspect(&[]).await.unwrap();
            store.heartbeat(&report(name, now)).await.unwrap();
        });
    }

    /// Closes the slot before the job's current one, which nobody ran.
    pub(crate) fn miss(&self, job: &str) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = store::open(&self.url, patient()).await.unwrap();
            let (now, _) = store.inspect(&[]).await.unwrap();
            let last = slot(job, slot(job, now).start() - chrono::TimeDelta::seconds(1));
            store.close(&last, 3, &NodeName::new("a").unwrap()).await.unwrap();
        });
    }

    /// The folder to run in.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Runs a command against the store.
    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        self.place.run(&[args, &["--store", &self.url]].concat())
    }

    /// The command, not started.
    pub(crate) fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = self.place.command(args);
        command.args(["--store", &self.url]);
        command
    }

    /// The store's url.
    pub(crate) fn file(&self) -> String {
        self.url.clone()
    }
}

async fn fill(store: &dyn Store) -> String {
    let entries = ["billing", "mail", "push", "quiet"].map(entry);
    store.register(&entries).await.unwrap();
    let (now, _) = store.inspect(&[]).await.unwrap();
    for (attempt, node) in [(1, "a"), (2, "b")] {
        let lease = claim(store, "billing", node, attempt, now).await;
        if attempt == 1 {
            fail(store, &lease, "no route\n").await;
        }
    }
    let long: String = (1..=12).map(|n| format!("line {n} \u{1b}[31m\n")).collect();
    for (attempt, node) in [(1, "a"), (2, "b"), (3, "c")] {
        let lease = claim(store, "mail", node, attempt, now).await;
        fail(store, &lease, &long).await;
    }
    let lease = claim(store, "push", "a", 1, now).await;
    let run = RunRecord { outcome: Some(Outcome::Success), exit_code: Some(0), ..run(&lease, "sent\n") };
    store.complete(&lease, &run, Duration::from_secs(3_600)).await.unwrap();
    slot("quiet", now).key().to_string()
}

/// How long a busy machine makes a store wait is not what is looked at.
fn patient() -> StoreOptions {
    StoreOptions::default().with_op_timeout(Duration::from_secs(30))
}

fn report(name: &str, now: DateTime<Utc>) -> NodeReport {
    NodeReport {
        version: "0.1.0".to_owned(),
        config_hash: "c0ffee".to_owned(),
        ..NodeReport::new(NodeName::new(name).unwrap(), "i1", now)
    }
}

fn entry(name: &str) -> JobEntry {
    JobEntry {
        name: JobName::new(name).unwrap(),
        schedule: "0 * * * *".to_owned(),
        timezone: "UTC".to_owned(),
        period: PERIOD.to_owned(),
        max_attempts: 3,
        enabled: true,
        planned: None,
        command: None,
        origin: JobOrigin::File,
        first_seen: slot(name, chrono::Utc::now()).start(),
    }
}

fn slot(job: &str, now: DateTime<Utc>) -> Slot {
    let timetable = Timetable::parse(JobName::new(job).unwrap(), "0 * * * *", "UTC", PERIOD).unwrap();
    timetable.slot_at(now).unwrap()
}

async fn claim(store: &dyn Store, job: &str, node: &str, attempt: u32, now: DateTime<Utc>) -> Lease {
    let request = ClaimRequest {
        trigger: if attempt == 1 { Trigger::Schedule } else { Trigger::Retry },
        ..ClaimRequest::new(
            slot(job, now),
            Token::from_bits(u128::from(attempt)),
            NodeName::new(node).unwrap(),
            Duration::from_secs(600),
            3,
        )
    };
    match store.claim(&request).await.unwrap() {
        Claim::Claimed { attempt, at, .. } => request.granted(attempt, at),
        other => panic!("{job}: {other:?}"),
    }
}

async fn fail(store: &dyn Store, lease: &Lease, output: &str) {
    let run = RunRecord { outcome: Some(Outcome::Failure), exit_code: Some(7), ..run(lease, output) };
    store.fail(lease, &run, Duration::ZERO).await.unwrap();
}

/// An attempt that took 400 ms by its node's word. It ends when it began, so that what happened is in the same order on
/// every machine.
fn run(lease: &Lease, output: &str) -> RunRecord {
    RunRecord {
        started_at: Some(lease.claimed_at),
        ended_at: Some(lease.claimed_at),
        duration_ms: Some(400),
        output: Some(OutputTail { text: output.to_owned(), dropped_bytes: 0, loss: None }),
        ..RunRecord::begun(lease)
    }
}
