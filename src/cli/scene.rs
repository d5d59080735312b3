//! A cluster in miniature for tests: a store in memory, a clock that is moved by hand, and nodes that claim and fail.

use std::sync::Arc;
use std::time::Duration;

use crate::cli::console::Console;
use crate::cli::fixture::{at, entry, node, report};
use crate::cli::session::Session;
use crate::cli::store_args::{StoreAddress, StoreArgs};
use crate::clock::{Clock, ManualClock};
use crate::job::JobName;
use crate::schedule::Timetable;
use crate::slot::{Lease, Outcome, RunRecord, Token};
use crate::store::memory::MemoryStore;
use crate::store::{Claim, ClaimRequest, JobEntry, NodeReport, Store, StoreOptions};

/// A store, its clock, and who has claimed so far.
pub(crate) struct Scene {
    pub(crate) clock: ManualClock,
    pub(crate) store: Arc<dyn Store>,
    claims: u128,
}

impl Scene {
    /// An empty store at noon.
    pub(crate) fn at(start: &str) -> Self {
        let clock = ManualClock::at(at(start));
        let store = Arc::new(MemoryStore::new(StoreOptions::default(), Arc::new(clock.clone())));
        Self { clock, store, claims: 0 }
    }

    /// Makes the registry know a job with hourly slots.
    pub(crate) async fn register(&self, name: &str, schedule: &str) {
        let entry = JobEntry { schedule: schedule.to_owned(), ..entry(name) };
        self.store.register(&[entry]).await.unwrap();
    }

    /// A node tells that it is alive, and has these jobs in its file.
    pub(crate) async fn node(&mut self, name: &str, jobs: &[&str]) {
        let now = self.clock.now().wall;
        let job_hashes = jobs.iter().map(|job| (JobName::new(job).unwrap(), String::new())).collect();
        self.store.heartbeat(&NodeReport { job_hashes, ..report(name, now) }).await.unwrap();
    }

    pub(crate) fn pass(&self, minutes: u64) {
        self.clock.advance(Duration::from_secs(60 * minutes));
    }

    /// A request for the job's slot of now, under the token of the next claim.
    pub(crate) fn request(&self, job: &str, node_name: &str) -> ClaimRequest {
        let timetable = Timetable::parse(JobName::new(job).unwrap(), "0 * * * *", "UTC", "hour").unwrap();
        ClaimRequest::new(
            timetable.slot_at(self.clock.now().wall).unwrap(),
            Token::from_bits(self.claims + 1),
            node(node_name),
            Duration::from_secs(60),
            3,
        )
    }

    /// A node claims the job's slot of now.
    pub(crate) async fn claim(&mut self, job: &str, node_name: &str) -> Lease {
        let request = self.request(job, node_name);
        self.claims += 1;
        match self.store.claim(&request).await.unwrap() {
            Claim::Claimed { attempt, at, .. } => request.granted(attempt, at),
            other => panic!("{other:?}"),
        }
    }

    /// A node claims the job's slot of now and fails at once.
    pub(crate) async fn fail(&mut self, job: &str, node_name: &str) {
        let lease = self.claim(job, node_name).await;
        let run = ended(&lease, Outcome::Failure, 1);
        self.store.fail(&lease, &run, Duration::ZERO).await.unwrap();
    }

    /// A node claims the job's slot of now and does it.
    pub(crate) async fn succeed(&mut self, job: &str, node_name: &str) {
        let lease = self.claim(job, node_name).await;
        let run = ended(&lease, Outcome::Success, 0);
        self.store.complete(&lease, &run, Duration::from_secs(7_200)).await.unwrap();
    }

    /// What a command begins with.
    pub(crate) async fn session(&self) -> Session {
        let address = StoreAddress {
            url: "memory".to_owned(),
            options: StoreOptions::default(),
            url_file: None,
            from_command_line: true,
        };
        let (mut console, _, _) = Console::captured(false);
        Session::on(Arc::clone(&self.store), address, &StoreArgs::default(), None, &mut console).await.unwrap()
    }
}

fn ended(lease: &Lease, outcome: Outcome, exit_code: i32) -> RunRecord {
    RunRecord {
        started_at: Some(lease.claimed_at),
        ended_at: Some(lease.claimed_at),
        duration_ms: Some(0),
        outcome: Some(outcome),
        exit_code: Some(exit_code),
        ..RunRecord::begun(lease)
    }
}
