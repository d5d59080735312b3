//! `cronward migrate`: makes the tables of a store in a database, or brings them up to date. Touches no record.

use serde::Serialize;

use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::store_args::StoreArgs;
use crate::store::{self, Migration, redact};

/// Makes the store's tables, or brings them up to date; for a user who may, where the daemon's may not
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward migrate --store postgres://owner@db.example/cronward")]
pub(crate) struct Args {
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
pub(crate) async fn migrate(args: &Args, console: &mut Console) -> Result<(), Failure> {
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
        None => "this store makes what it needs by itself; nothing to do".to_owned(),
        Some(Migration { from, to }) if from == to => format!("the tables have version {to}; nothing to do"),
        Some(Migration { from: 0, to }) => format!("made the tables, version {to}"),
        Some(Migration { from, to }) => format!("brought the tables from version {from} to {to}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_was_done_and_when_nothing_was() {
        assert_eq!(told(Some(Migration { from: 0, to: 2 })), "made the tables, version 2");
        assert_eq!(told(Some(Migration { from: 1, to: 2 })), "brought the tables from version 1 to 2");
        assert!(told(Some(Migration { from: 2, to: 2 })).contains("nothing to do"));
        assert!(told(None).contains("nothing to do"));
    }
}
