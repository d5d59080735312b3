//! What is set up before the first start: `cronward init` writes a first `jobs.toml`, and never over another; `cronward migrate` makes
//! the tables of a store in a database, or brings them up to date, and touches no record.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::store_args::StoreArgs;
use crate::store::{self, Migration, redact};

/// The sample of the repository, with every key and three jobs that are seen to work.
const SAMPLE: &str = include_str!("../../jobs.toml");

/// Write a sample jobs.toml, with every key explained and three jobs to try
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward init /etc/cronward/jobs.toml")]
pub(crate) struct InitArgs {
    /// The file to write; its folder must exist
    #[arg(value_name = "PATH", default_value = "jobs.toml")]
    pub(crate) path: PathBuf,
}

/// Writes the file.
pub(crate) fn init(args: &InitArgs, console: &mut Console) -> Result<(), Failure> {
    let shown = args.path.display();
    write(&args.path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure::Configuration(format!("{shown} exists and was not changed; name another path"))
        }
        _ => Failure::Configuration(format!("cannot write {shown}: {error}; name another path")),
    })?;
    let config = if args.path == Path::new("jobs.toml") { String::new() } else { format!(" --config {shown}") };
    console.print(&format!("Wrote {shown}. Next: cronward check{config}, then cronward run{config}\n"))
}

/// Makes the file and fills it; one that is there, or a link that points anywhere, is an error.
fn write(path: &Path) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let written = file.write_all(SAMPLE.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        // A half of it would be taken for the whole. That it cannot be removed either is not the news.
        let _ = std::fs::remove_file(path);
    }
    written
}

/// Create or update the store's tables, as a database user with the rights that the daemon's user lacks
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward migrate --store postgres://owner@db.example/cronward")]
pub(crate) struct MigrateArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// JSON with documented, stable fields
    #[arg(long)]
    pub(crate) json: bool,
}

/// What was done, for programs.
#[derive(Debug, Serialize)]
struct MigrationView<'a> {
    /// The store, without secrets.
    store: &'a str,
    /// The version that the tables had, 0 for none; null for a store that makes what it needs by itself.
    from: Option<i64>,
    /// The version that they have now; null as above.
    to: Option<i64>,
}

/// Makes the tables, and says what was done.
pub(crate) async fn migrate(args: &MigrateArgs, console: &mut Console) -> Result<(), Failure> {
    let file = args.store.read_file(console)?;
    let address = args.store.address(file.as_ref(), console)?;
    let done = store::migrate(&address.url).await;
    let done = done.map_err(|error| Failure::opening(error, address.from_command_line))?;
    let store = &redact(&address.url);
    if args.json {
        let (from, to) = done.map(|done| (done.from, done.to)).unzip();
        return console.json(&MigrationView { store, from, to });
    }
    console.print(&format!("{store}: {}\n", told(done)))
}

fn told(done: Option<Migration>) -> String {
    match done {
        None => "this store needs no migration; nothing to do".to_owned(),
        Some(Migration { from, to }) if from == to => format!("the tables have version {to}; nothing to do"),
        Some(Migration { from: 0, to }) => format!("created the tables, version {to}"),
        Some(Migration { from, to }) => format!("updated the tables from version {from} to {to}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_was_done_and_when_nothing_was() {
        assert_eq!(told(Some(Migration { from: 0, to: 2 })), "created the tables, version 2");
        assert_eq!(told(Some(Migration { from: 1, to: 2 })), "updated the tables from version 1 to 2");
        assert!(told(Some(Migration { from: 2, to: 2 })).contains("nothing to do"));
        assert!(told(None).contains("nothing to do"));
    }
}
