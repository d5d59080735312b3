//! What there is to a kind of store besides its operations: what its url may say, how it is opened, where it keeps a slot; and to one
//! that was opened: how it is looked at, and what a trial wrote removed. Each adapter has one, and `open` has the table of them.

use std::sync::Arc;

use async_trait::async_trait;

use crate::clock::Clock;
use crate::job::Namespace;
use crate::slot::Slot;
use crate::store::{
    Advice, Capability, Finding, Migration, OpenError, Station, Store, StoreError, StoreOptions, Trial,
};

/// What a store keeps of a slot under one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptPart {
    /// The lease, the wait or the done marker.
    Mark,
    /// The attempt counter.
    Attempts,
    /// Each attempt, the verdict, the audit.
    Log,
    /// The end of each attempt's output.
    Outputs,
    /// The outputs, by their prefix.
    OutputsBelow,
    /// The decision log.
    Decisions,
    /// The decision log, by its prefix.
    DecisionsBelow,
    /// The latest success and failures of the job.
    Latest,
    /// The pause of every job.
    Pauses,
    /// All but the outputs, which are below it.
    AllButOutputs,
    /// The database, with tables of its own names.
    Tables,
    /// The database, with tables that begin with `cronward_`.
    PrefixedTables,
    /// The rows in them.
    Rows,
}

impl KeptPart {
    /// In words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mark => "lease, wait or done marker",
            Self::Attempts => "attempt counter",
            Self::Log => "each attempt, verdict, audit",
            Self::Outputs => "the end of each attempt's output",
            Self::OutputsBelow => "the outputs, by their prefix",
            Self::Decisions => "the decision log",
            Self::DecisionsBelow => "the decision log, by its prefix",
            Self::Latest => "the job's latest success and failures",
            Self::Pauses => "every job's pause",
            Self::AllButOutputs => "all but the outputs, which are below it",
            Self::Tables => "the tables slots, outputs and notes",
            Self::PrefixedTables => "the tables cronward_slots, cronward_outputs and cronward_notes",
            Self::Rows => "the rows",
        }
    }
}

/// How far a url is read.
#[cfg(any(feature = "redis", feature = "etcd"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Files {
    /// With the files that it names.
    Read,
    /// Its text alone.
    Unread,
}

/// A kind of store. What one has nothing of is as if it were asked and found nothing.
#[async_trait]
pub(super) trait Backend: Sync {
    /// What it can do.
    fn capability(&self) -> Capability;

    /// Refuses what [`Backend::open`] refuses for the text of the url alone: reads no file and no environment, and asks nobody.
    fn check(&self, _url: &str) -> Result<(), OpenError> {
        Ok(())
    }

    /// What to write, where the reason of [`Backend::check`] does not say it.
    fn form(&self, _url: &str) -> String {
        String::new()
    }

    /// What it does not promise, for whoever chooses it.
    fn advice(&self) -> Option<Advice> {
        None
    }

    /// Whether the lock of a foreign program can be held there ([`StoreOptions::lock_key`]).
    fn holds_foreign_keys(&self) -> bool {
        false
    }

    /// Whether it may stand on several servers with rights of their own ([`Opened::stations`]).
    fn has_stations(&self) -> bool {
        false
    }

    /// Opens it. No connection is made where that can wait.
    async fn open(&self, url: &str, options: StoreOptions, clock: Arc<dyn Clock>)
    -> Result<Arc<dyn Opened>, OpenError>;

    /// Makes its tables where there are none; nothing where there are none to be made.
    async fn migrate(&self, _url: &str) -> Result<Option<Migration>, OpenError> {
        Ok(None)
    }

    /// Where the store at this location keeps a slot, each name with what it is; for a person with the store's own client at hand.
    fn where_kept(&self, location: &str, namespace: &Namespace, slot: &Slot) -> Vec<(String, KeptPart)>;

    /// The words of the command by which that person asks whether the slot is leased or done; none where one command does not do.
    fn client_command(&self, _location: &str, _namespace: &Namespace, _slot: &Slot) -> Vec<String> {
        Vec::new()
    }
}

/// A store that was opened, with what there is to it besides its operations.
#[async_trait]
pub(super) trait Opened: Store {
    /// What is particular to it; see [`crate::store::examine`].
    async fn examine(&self) -> Vec<Finding> {
        Vec::new()
    }

    /// Its servers, where there are several with rights of their own; see [`crate::store::stations`].
    async fn stations(self: Arc<Self>) -> Vec<Station> {
        Vec::new()
    }

    /// Removes what a trial wrote.
    async fn forget(&self, _trial: &Trial) -> Result<(), StoreError> {
        Ok(())
    }
}
