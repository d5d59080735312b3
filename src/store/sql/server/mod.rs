//! Stores in a database server that several nodes share. What is the same for every server is here; each `Dialect` has its
//! own connection, texts, errors and way to write, and decides nothing about slots.
//!
//! - **Atomic steps without locks that outlive a thought.** A slot is read by one statement, the rule is applied here, and
//!   the change is written by one transaction that succeeds only if the row's version is still the one that was read. If
//!   not, somebody else's step came first: it is read again (I1, I5). A node that stalls between the two holds nothing.
//! - **Time** is the server's clock, read by the statement that reads the slot. A change that comes later than the time limit
//!   of a call after that is refused by the server.
//! - **Bounded.** A call ends within `op_timeout`, and the server is told to give up a statement by then too. At most
//!   [`pool::MOST`] connections are open, one more for hints.
//! - **Tried again here** is only what certainly was not applied: a step that another's came before, a transaction that the
//!   server rolled back for a deadlock, and a first statement on a connection that had died while it was idle.
//! - **Applied.** An error before the write is sent is [`Applied::No`](crate::store::Applied), so is the server's answer that
//!   it rolled back; everything else about a write is `Maybe`.

mod pool;
mod store;

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use url::Url;

use crate::store::sql::fault::Fault;
use crate::store::sql::session::Session;
use crate::store::sql::slots::{Scope, SlotWrite};
use crate::store::sql::tables_are_missing;
use crate::store::{Applied, Capability, ErrorKind, Migration, Op, OpenError, StoreOptions, Wake, Wakeups};

pub(super) use store::ServerStore;

/// What a transaction sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Isolation {
    /// Everything as of one instant; nothing is written.
    Snapshot,
    /// Each statement what was committed before it.
    Committed,
}

/// What a failed statement tells about the connection and the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// The server rolled the transaction back in favour of another: the same may succeed at once.
    RolledBack,
    /// The server refused it; nothing of it was written.
    Refused,
    /// The connection is gone, or nobody knows: a write may have been applied.
    Unknown,
}

/// A server's dialect, and how its server is reached.
#[async_trait]
pub(super) trait Dialect: Debug + Send + Sync + 'static {
    /// A connection.
    type Session: Session + Debug;

    fn capability() -> Capability;

    /// What an error means, for people.
    fn meaning(error: &sqlx::Error) -> (ErrorKind, String);

    /// What an error tells about what was sent.
    fn sent(error: &sqlx::Error) -> Sent;

    /// A new connection whose every statement the server gives up after `limit`, with the tables checked.
    async fn connect(&self, limit: Duration) -> Result<Self::Session, Fault>;

    /// Begins a transaction, and has the session look at the server's clock.
    async fn begin(session: &mut Self::Session, isolation: Isolation) -> Result<(), Fault>;

    async fn commit(session: &mut Self::Session) -> Result<(), sqlx::Error>;

    async fn roll_back(session: &mut Self::Session) -> Result<(), sqlx::Error>;

    /// Writes a change of a slot, if its row still has the version that was read, or is not there still, and no more than `limit` has
    /// passed since. False when nothing was written: somebody else's change came first.
    async fn write(
        session: &mut Self::Session,
        scope: &Scope,
        write: &SlotWrite,
        limit: Duration,
    ) -> Result<bool, Fault>;

    /// The statement that removes the turns up to an instant of the jobs of a namespace that have no slots; up to another of those that
    /// have come to anything.
    fn turns_purge() -> &'static str;

    /// Tells the others once the transaction is committed, where the server can.
    async fn tell(session: &mut Self::Session, scope: &Scope, wake: &Wake) -> Result<(), Fault>;

    /// Tells this process of a change that is committed, where the server does not.
    fn told(&self, wake: Wake);

    fn subscribe(&self) -> Wakeups;
}

/// How the tables are come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Missing tables are made.
    Migrate,
    /// They have to be there.
    Use,
}

impl Access {
    /// What the url allows, and whoever opens the store as well.
    pub(super) const fn within(self, options: &StoreOptions) -> Self {
        if options.migrate { self } else { Self::Use }
    }
}

/// Takes `migrate` out of the url, and refuses parameters that nobody knows: the driver would ignore them in silence.
pub(super) fn take_access(url: &mut Url, known: &[&str]) -> Result<Access, String> {
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    if let Some((unknown, _)) = pairs.iter().find(|(name, _)| name != "migrate" && !known.contains(&name.as_str())) {
        return Err(format!("parameter {unknown:?} is not known; known are {}, migrate", known.join(", ")));
    }
    let access = match pairs.iter().find(|(name, _)| name == "migrate").map(|(_, value)| value.as_str()) {
        None | Some("on") => Access::Migrate,
        Some("off") => Access::Use,
        Some(_) => return Err("migrate is \"on\" or \"off\"".to_owned()),
    };
    url.query_pairs_mut().clear().extend_pairs(pairs.iter().filter(|(name, _)| name != "migrate"));
    Ok(access)
}

/// What is to be done with tables of a version that was never released.
const WAY_OUT: &str = "stop all nodes, drop the tables whose names begin with cronward_, or name an empty database in the url, and \
                       run `cronward migrate`";

/// Whether the tables have to be made, if that is allowed.
pub(super) fn are_missing(version: i64, access: Access) -> Result<bool, Fault> {
    let missing = tables_are_missing(version, WAY_OUT)?;
    if missing && access == Access::Use {
        let why = "its tables are missing: run `cronward migrate` as a user who may create them";
        return Err(Fault::known(ErrorKind::Unsupported, why.to_owned()));
    }
    Ok(missing)
}

/// Making tables waits for others who do the same.
pub(super) const MIGRATION_LIMIT: Duration = Duration::from_secs(60);

/// The outcome of making the tables, within the limit, as it is told.
pub(super) async fn migrated<D: Dialect>(
    location: &str,
    work: impl Future<Output = Result<Migration, Fault>>,
) -> Result<Migration, OpenError> {
    let done = tokio::time::timeout(MIGRATION_LIMIT, work).await.unwrap_or_else(|_| {
        let message = format!("no answer within {MIGRATION_LIMIT:?}: somebody keeps a lock on the tables");
        Err(Fault::known(ErrorKind::Timeout, message))
    });
    Ok(done.map_err(|fault| fault.into_error(Op::Open, Applied::Maybe, location, D::meaning))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sql::SCHEMA_VERSION;

    fn refusal(version: i64, access: Access) -> String {
        are_missing(version, access).err().map(|fault| fault.to_string()).unwrap_or_default()
    }

    #[test]
    fn who_may_not_migrate_is_told_who_has_to() {
        assert!(are_missing(0, Access::Migrate).unwrap());
        assert!(refusal(0, Access::Use).contains("`cronward migrate`"));
        assert_eq!(refusal(SCHEMA_VERSION, Access::Use), "");
    }

    #[test]
    fn tables_of_another_version_are_left_alone_and_older_ones_told_with_the_way_out() {
        for access in [Access::Use, Access::Migrate] {
            assert!(refusal(SCHEMA_VERSION + 1, access).contains("run the newer cronward"));
            assert!(refusal(3, access).contains("drop the tables whose names begin with cronward_"));
        }
    }
}
