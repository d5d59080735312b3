//! An open store with the jobs that are known there: what every listing starts from.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::cli::catalog::{Asked, Catalog};
use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::store_args::{StoreAddress, StoreArgs};
use crate::clock::SystemClock;
use crate::config::{self, Config};
use crate::slot::{RunRecord, Slot, SlotRecord};
use crate::store::layer::{Credentials, Rotation};
use crate::store::{self, OpenError, Store, StoreOptions};

/// The newest attempts of a slot whose outputs are read.
const OUTPUTS: usize = 16;
/// Slots asked for at once: enough to make round trips cheap, few enough to hold no store up.
pub(crate) const BATCH: usize = 100;

/// An open store with the jobs that are known there.
pub(crate) struct Session {
    /// The store.
    pub(crate) store: Arc<dyn Store>,
    /// How it was opened.
    pub(crate) address: StoreAddress,
    /// The file's jobs and the registry's.
    pub(crate) catalog: Catalog,
    /// The store's clock when the session began: what "current" refers to.
    pub(crate) now: DateTime<Utc>,
}

impl Session {
    /// Reads the file, opens the store, asks it for the time and for its registry. A store that is not there is not made.
    pub(crate) async fn open(args: &StoreArgs, console: &mut Console) -> Result<Self, Failure> {
        let file = args.read_file(console)?;
        let address = args.address(file.as_ref(), console)?.only_looked_at();
        let store = connect(&address).await?;
        Self::on(store, address, args, file.as_ref(), console).await
    }

    /// The same for a command that runs jobs of the file: it may be the first to use the store.
    pub(crate) async fn open_to_run(args: &StoreArgs, console: &mut Console) -> Result<Self, Failure> {
        let file = args.read_file(console)?;
        let address = args.address(file.as_ref(), console)?;
        let address = if file.is_some() { address } else { address.only_looked_at() };
        let store = connect(&address).await?;
        Self::on(store, address, args, file.as_ref(), console).await
    }

    /// Begins with a store that is open.
    pub(crate) async fn on(
        store: Arc<dyn Store>,
        address: StoreAddress,
        args: &StoreArgs,
        file: Option<&Config>,
        console: &mut Console,
    ) -> Result<Self, Failure> {
        let (now, nodes) = store.nodes().await?;
        let asked = Asked { location: store.location().to_owned(), listing: args.command("jobs") };
        let catalog = Catalog::unite(file, store.jobs().await?)?.planned_by(&nodes, now).of_store(asked);
        for warning in &catalog.warnings {
            console.warn(warning);
        }
        Ok(Self { store, address, catalog, now })
    }

    /// Asks the store for the time and for its registry once more. What cannot be read of it was told the first time.
    pub(crate) async fn look_again(&mut self, file: Option<&Config>) -> Result<(), Failure> {
        let (now, nodes) = self.store.nodes().await?;
        self.catalog = Catalog::unite(file, self.store.jobs().await?)?.planned_by(&nodes, now).like(&self.catalog);
        self.now = now;
        Ok(())
    }

    /// Reads the output of a run into its record, where it may have left one.
    pub(crate) async fn read_output(&self, slot: &Slot, run: &mut RunRecord) -> Result<(), Failure> {
        if run.outcome.is_some() && run.output.is_none() {
            run.output = self.store.output(slot, run.attempt, run.token).await?;
        }
        Ok(())
    }

    /// Reads the outputs of a slot's newest attempts into its record: each may have a megabyte.
    pub(crate) async fn read_outputs(&self, record: &mut SlotRecord) -> Result<(), Failure> {
        for run in record.runs.iter_mut().rev().take(OUTPUTS) {
            self.read_output(&record.slot, run).await?;
        }
        Ok(())
    }

    /// Records of slots without outputs, in the order asked, in as many steps as it takes.
    pub(crate) async fn inspect(&self, slots: &[Slot]) -> Result<Vec<SlotRecord>, Failure> {
        let mut records = Vec::with_capacity(slots.len());
        for batch in slots.chunks(BATCH) {
            records.extend(self.store.inspect(batch).await?.1);
        }
        Ok(records)
    }
}

/// Opens a store. One whose url is in a file of its own goes on with what is written there once it refuses its password.
pub(crate) async fn connect(address: &StoreAddress) -> Result<Arc<dyn Store>, Failure> {
    match address.url_file {
        Some(_) => Ok(connect_for_long(address).await?.store()),
        None => open(&address.url, &address.options).await.map_err(|error| address.failed(error)),
    }
}

/// The same for whoever may be told of another url.
pub(crate) async fn connect_for_long(address: &StoreAddress) -> Result<Arc<Rotation>, Failure> {
    let store = open(&address.url, &address.options).await.map_err(|error| address.failed(error))?;
    let written = UrlFile { url_file: address.url_file.clone(), options: address.options.clone().as_it_is() };
    Ok(Rotation::of(store, &address.url, Box::new(written), Arc::new(SystemClock)))
}

async fn open(url: &str, options: &StoreOptions) -> Result<Arc<dyn Store>, OpenError> {
    store::open(url, options.clone(), Arc::new(SystemClock)).await
}

/// Credentials as they are written in `url_file`.
#[derive(Debug)]
struct UrlFile {
    url_file: Option<PathBuf>,
    options: StoreOptions,
}

#[async_trait]
impl Credentials for UrlFile {
    async fn read(&self) -> Result<Option<String>, String> {
        let Some(path) = self.url_file.clone() else { return Ok(None) };
        let shown = path.display().to_string();
        // A disk that hangs holds up a thread, and nobody else.
        let read = tokio::task::spawn_blocking(move || config::read_url_file(&path)).await;
        let read = read.unwrap_or_else(|error| Err(error.to_string()));
        read.map(Some).map_err(|error| format!("url_file {shown:?} {error}"))
    }

    async fn open(&self, url: &str) -> Result<Arc<dyn Store>, OpenError> {
        open(url, &self.options).await
    }
}

/// Runs one command to its end on this thread: a listing needs no more, and starts faster.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Internal(format!("cannot start: {error}")))?;
    let result = runtime.block_on(work);
    // A thread may hang in a write to a reader that does not read: the result is there, and nothing waits for that.
    runtime.shutdown_background();
    result
}
