//! Opens the store that a command's arguments and its file name.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use crate::admin::AdminSession;
use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::store_args::{StoreAddress, StoreArgs};
use crate::clock::SystemClock;
use crate::config::{self, Config};
use crate::store::layer::{Credentials, Rotation};
use crate::store::{self, LockStore, OpenError, Reach, Store, StoreOptions};

/// Reads the file, opens the store, asks it for the time and for its registry. A store that is not there is not made.
pub(crate) async fn open(args: &StoreArgs, console: &mut Console) -> Result<AdminSession, Failure> {
    Ok(open_at(args, console).await?.0)
}

/// The same with how the store was opened.
pub(crate) async fn open_at(args: &StoreArgs, console: &mut Console) -> Result<(AdminSession, StoreAddress), Failure> {
    let file = args.read_file(console)?;
    let address = args.address(file.as_ref(), console)?.for_a_person();
    let store = connect(&address).await?;
    Ok((begin(store, &address, args, file.as_ref(), console).await?, address))
}

/// The same for a command that runs jobs of the file: it may be the first to use the store.
pub(crate) async fn open_to_run(
    args: &StoreArgs,
    console: &mut Console,
) -> Result<(AdminSession, StoreAddress), Failure> {
    let file = args.read_file(console)?;
    let address = args.address(file.as_ref(), console)?;
    let address = if file.is_some() { address } else { address.for_a_person() };
    let store = connect(&address).await?;
    Ok((begin(store, &address, args, file.as_ref(), console).await?, address))
}

/// Begins with a store that is open. Warns of jobs of its registry that cannot be used.
pub(crate) async fn begin(
    store: Arc<dyn Store>,
    address: &StoreAddress,
    args: &StoreArgs,
    file: Option<&Config>,
    console: &mut Console,
) -> Result<AdminSession, Failure> {
    let session = AdminSession::begin(store, address.options.retention, file, args.command("jobs")).await?;
    for warning in &session.catalog.warnings {
        console.warn(warning);
    }
    Ok(session)
}

/// Opens a store. One whose url is in a file of its own goes on with what is written there once it refuses its password.
pub(crate) async fn connect(address: &StoreAddress) -> Result<Arc<dyn Store>, Failure> {
    match address.url_file {
        Some(_) => Ok(connect_for_long(address).await?.store()),
        None => open_url(&address.url, &address.options).await.map_err(|error| address.failed(error)),
    }
}

/// For a command that guards its own against those of other processes: a store that none of them shares guards nothing.
pub(crate) fn is_shared(address: &StoreAddress) -> Result<(), Failure> {
    refuse_own(address, "guards against no other")
}

/// For a command that looks at what other processes hold: in a store that none of them shares there is nothing.
pub(crate) fn shows_others(address: &StoreAddress) -> Result<(), Failure> {
    refuse_own(address, "shows nothing of another")
}

fn refuse_own(address: &StoreAddress, because: &str) -> Result<(), Failure> {
    let alone = store::capability(&address.url).filter(|capability| capability.reach == Reach::Process);
    let Some(alone) = alone else { return Ok(()) };
    let name = alone.name;
    let why = format!("store {name} is this process's own and {because}: name a store that others share");
    Err(if address.from_command_line { Failure::Usage(why) } else { Failure::Configuration(why) })
}

/// [`connect`] for the locks that the store keeps.
pub(crate) async fn connect_locks(address: &StoreAddress) -> Result<Arc<dyn LockStore>, Failure> {
    let none = |store| address.failed(OpenError::Locks { store });
    // No file is opened, and nobody asked, for locks that are not there.
    if let Some(lacking) = store::capability(&address.url).filter(|capability| !capability.locks) {
        return Err(none(lacking.name));
    }
    let store = connect(address).await?;
    let name = store.capability().name;
    store.lock_store().ok_or_else(|| none(name))
}

/// [`connect`] for whoever may be told of another url.
pub(crate) async fn connect_for_long(address: &StoreAddress) -> Result<Arc<Rotation>, Failure> {
    let store = open_url(&address.url, &address.options).await.map_err(|error| address.failed(error))?;
    let written = UrlFile { url_file: address.url_file.clone(), options: address.options.clone().as_it_is() };
    Ok(Rotation::of(store, &address.url, Box::new(written), Arc::new(SystemClock)))
}

async fn open_url(url: &str, options: &StoreOptions) -> Result<Arc<dyn Store>, OpenError> {
    store::open(url, options.clone()).await
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
        open_url(url, &self.options).await
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
