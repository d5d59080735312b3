//! An open store with the jobs that are known there: what every listing starts from.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::admin::AdminError;
use crate::admin::catalog::{Asked, Catalog};
use crate::config::Config;
use crate::error::ErrorKind;
#[cfg(feature = "http")]
use crate::job::JobSpec;
use crate::slot::{RunRecord, Slot, SlotRecord};
use crate::store::{Store, StoreError, inspect_each};

/// The newest attempts of a slot whose outputs are read.
const OUTPUTS: usize = 16;
/// Slots asked for at once: enough to make round trips cheap, few enough to hold no store up.
pub(crate) const BATCH: usize = 100;

/// An open store with the jobs that are known there.
#[derive(Debug)]
pub(crate) struct AdminSession {
    /// The store.
    pub(crate) store: Arc<dyn Store>,
    /// The file's jobs and the registry's.
    pub(crate) catalog: Catalog,
    /// The store's clock when the session began: what "current" refers to.
    pub(crate) now: DateTime<Utc>,
    /// How long the store keeps records.
    pub(crate) retention: Duration,
}

impl AdminSession {
    /// Asks a store for the time and for its registry. `listing` is the command that lists its jobs.
    pub(crate) async fn begin(
        store: Arc<dyn Store>,
        retention: Duration,
        file: Option<&Config>,
        listing: String,
    ) -> Result<Self, AdminError> {
        let (now, nodes) = store.nodes().await?;
        let asked = Asked { location: store.location().to_owned(), listing };
        let catalog = Catalog::unite(file, store.jobs().await?)?.planned_by(&nodes, now);
        let catalog = catalog.attended_by(&nodes, now).of_store(asked);
        Ok(Self { store, catalog, now, retention })
    }

    /// The same with the jobs that a node plans.
    #[cfg(feature = "http")]
    pub(crate) async fn planned(
        store: Arc<dyn Store>,
        retention: Duration,
        specs: &[Arc<JobSpec>],
        listing: String,
    ) -> Result<Self, AdminError> {
        let (now, nodes) = store.nodes().await?;
        let asked = Asked { location: store.location().to_owned(), listing };
        let catalog = Catalog::planned(specs, store.jobs().await?).planned_by(&nodes, now).of_store(asked);
        Ok(Self { store, catalog, now, retention })
    }

    /// Asks the store for the time and for its registry once more. What cannot be read of it was told the first time.
    pub(crate) async fn look_again(&mut self, file: Option<&Config>) -> Result<(), AdminError> {
        let (now, nodes) = self.store.nodes().await?;
        let catalog = Catalog::unite(file, self.store.jobs().await?)?.planned_by(&nodes, now);
        self.catalog = catalog.attended_by(&nodes, now).like(&self.catalog);
        self.now = now;
        Ok(())
    }

    /// Reads the output of a run into its record, where it may have left one.
    pub(crate) async fn read_output(&self, slot: &Slot, run: &mut RunRecord) -> Result<(), AdminError> {
        if run.outcome.is_some() && run.output.is_none() {
            run.output = self.store.output(slot, run.attempt, run.token).await?;
        }
        Ok(())
    }

    /// Reads the outputs of a slot's newest attempts into its record: each may have a megabyte. Answers why they cannot be read, where the
    /// store holds what cronward did not write: the rest is shown without them.
    pub(crate) async fn read_outputs(&self, record: &mut SlotRecord) -> Result<Option<StoreError>, AdminError> {
        for run in record.runs.iter_mut().rev().take(OUTPUTS) {
            match self.read_output(&record.slot, run).await {
                Err(AdminError::Store(error)) if error.kind == ErrorKind::Corrupt => return Ok(Some(error)),
                read => read?,
            }
        }
        Ok(None)
    }

    /// Records of slots without outputs, in the order asked, in as many steps as it takes; the error names the first that cannot be read.
    pub(crate) async fn inspect(&self, slots: &[Slot]) -> Result<Vec<SlotRecord>, AdminError> {
        Ok(self.inspect_each(slots).await?.into_iter().collect::<Result<_, _>>()?)
    }

    /// The same where the others are wanted all the same.
    pub(crate) async fn inspect_each(&self, slots: &[Slot]) -> Result<Vec<Result<SlotRecord, StoreError>>, AdminError> {
        let mut records = Vec::with_capacity(slots.len());
        for batch in slots.chunks(BATCH) {
            records.extend(inspect_each(&*self.store, batch).await?.1);
        }
        Ok(records)
    }
}
