//! The store on a majority of masters: what every operation needs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::panel::{Heard, Panel};
use super::target::Target;
use super::wake::Chorus;
use crate::clock::Clock;
use crate::job::JobName;
use crate::store::redis::RedisStore;
use crate::store::{Op, OpenError, Station, StoreError, StoreOptions, redact};

/// A store whose leases stand on a majority of independent Redis masters.
#[derive(Debug)]
pub struct RedlockStore {
    pub(super) panel: Panel,
    pub(super) chorus: Chorus,
    pub(super) options: StoreOptions,
    pub(super) location: String,
    /// What the url says.
    longest_lease: Duration,
    /// The longest that this process has asked for, by job: a file that was read again may have a shorter one by now.
    asked: Mutex<BTreeMap<JobName, Duration>>,
    pub(super) clock: Arc<dyn Clock>,
}

impl RedlockStore {
    /// Opens the store at `redlock://` or `redlocks://` (docs/stores.md has the forms). Only the url is judged here.
    pub async fn open(url: &str, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let target = Target::parse(url)?;
        let patience = Panel::patience(options.op_timeout);
        let mut masters = Vec::new();
        for master in &target.masters {
            let options = StoreOptions { op_timeout: patience, ..options.clone() };
            masters.push(RedisStore::open(master, options).await?);
        }
        let panel = Panel::new(masters, target.quorum, options.op_timeout);
        let location = redact(url);
        let (chorus, longest_lease, asked) = (Chorus::default(), target.longest_lease, Mutex::default());
        Ok(Self { panel, chorus, options, location, longest_lease, asked, clock })
    }

    /// Each master by itself, to be tried.
    pub(in crate::store) fn stations(&self) -> Vec<Station> {
        let alone = |master: &Arc<RedisStore>| {
            let station = Self {
                panel: Panel::of_one(Arc::clone(master), self.options.op_timeout),
                chorus: Chorus::default(),
                options: self.options.clone(),
                location: master.location.clone(),
                longest_lease: self.longest_lease,
                asked: Mutex::default(),
                clock: Arc::clone(&self.clock),
            };
            Station::of_all(Arc::new(station))
        };
        self.panel.masters.iter().map(alone).collect()
    }

    /// The longest lease of the job that is known here, when this one is asked for.
    pub(super) fn longest_lease(&self, job: &JobName, asked: Duration) -> Duration {
        let mut known = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let longest = known.get(job).copied().unwrap_or_default().max(asked);
        known.insert(job.clone(), longest);
        longest.max(self.longest_lease)
    }

    /// The answer that was weighed, or the error that says why there is none.
    pub(super) fn settled<T, A>(&self, op: Op, heard: Heard<A>, answer: Option<T>) -> Result<T, StoreError> {
        answer.ok_or_else(|| self.panel.too_few(op, &self.location, heard))
    }
}
