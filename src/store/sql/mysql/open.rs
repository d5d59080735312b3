//! Opens the store, and makes its tables.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast;

use super::place::{self, Place};
use super::session::{Basis, MySqlSession};
use super::{fault, schema};
use crate::store::sql::fault::Fault;
use crate::store::sql::row::Why;
use crate::store::sql::server::{
    Access, Dialect, Found, Grant, Isolation, MIGRATION_LIMIT, Sent, ServerStore, migrated,
};
use crate::store::sql::session::{Columns, Value};
use crate::store::sql::slots::{Loaded, Scope, SlotWrite};
use crate::store::state::SlotQuery;
use crate::store::{
    Capability, ErrorKind, Migration, OpenError, Reach, Store, StoreClock, StoreOptions, Trial, Wake, Wakeups,
};

/// How often somebody who waits looks again: other processes' releases are not heard of.
const POLL: Duration = Duration::from_millis(500);

/// Hints that a receiver may lag behind by before it has lost some.
const HINTS: usize = 256;

/// What it can do.
pub(in crate::store) const CAPABILITY: Capability = Capability {
    name: "mysql",
    reach: Reach::Network,
    clock: StoreClock::Server,
    push: false,
    poll: POLL,
    durable: true,
    expires_records: false,
};

/// A store in the MySQL or MariaDB server at `url`. Connects with the first call.
///
/// # Errors
/// [`OpenError::Url`] when the url cannot be used.
pub fn open(url: &str, options: StoreOptions) -> Result<Arc<dyn Store>, OpenError> {
    Ok(Arc::new(store(url, options)?))
}

fn store(url: &str, options: StoreOptions) -> Result<ServerStore<MySql>, OpenError> {
    let place = place::resolve(url)?;
    let location = place.location.clone();
    let dialect = MySql { place, hints: broadcast::Sender::new(HINTS) };
    Ok(ServerStore::new(dialect, location, options))
}

/// Removes what a trial wrote.
///
/// # Errors
/// [`OpenError::Url`] when the url cannot be used; [`OpenError::Store`] when the server cannot be reached, or refuses.
pub(in crate::store) async fn forget(url: &str, options: StoreOptions, trial: &Trial) -> Result<(), OpenError> {
    Ok(store(url, options)?.forget(trial).await?)
}

/// Makes the tables, or brings them up to date.
///
/// # Errors
/// [`OpenError::Url`] when the url cannot be used; [`OpenError::Store`] when the server cannot be reached, or refuses.
pub async fn migrate(url: &str) -> Result<Migration, OpenError> {
    let place = place::resolve(url)?;
    let work = async {
        let mut session = MySqlSession::connect(&place.options, MIGRATION_LIMIT).await?;
        schema::bring_up(&mut session, Access::Migrate, MIGRATION_LIMIT).await
    };
    migrated::<MySql>(&place.location, work).await
}

/// MySQL and MariaDB.
#[derive(Debug)]
struct MySql {
    place: Place,
    hints: broadcast::Sender<Wake>,
}

#[async_trait]
impl Dialect for MySql {
    type Session = MySqlSession;
    type Basis = Basis;

    fn capability() -> Capability {
        CAPABILITY
    }

    fn meaning(error: &sqlx::Error) -> (ErrorKind, String) {
        fault::meaning(error)
    }

    fn sent(error: &sqlx::Error) -> Sent {
        fault::sent(error)
    }

    async fn connect(&self, limit: Duration) -> Result<MySqlSession, Fault> {
        let mut session = MySqlSession::connect(&self.place.options, limit).await?;
        schema::bring_up(&mut session, self.place.access, limit).await?;
        Ok(session)
    }

    fn basis(row: &impl Columns) -> Result<Option<Basis>, Why> {
        Basis::read(row)
    }

    async fn grant(
        session: &mut MySqlSession,
        scope: &Scope,
        query: &SlotQuery,
        values: Vec<Value>,
    ) -> Result<Grant<Basis>, Fault> {
        let Some(at) = session.grant(values).await? else { return Ok(Grant::Refused) };
        // The number of the insertion may be none: where the table has a trigger, say.
        let at = at.filter(|at| (query.slot.start()..query.slot.end()).contains(at));
        let loaded = at.map(|at| Loaded::untouched(&query.slot, scope.at(at)));
        let found = loaded.map(|loaded| Box::new(Found { loaded, basis: None, granted: true }));
        Ok(found.map_or(Grant::Untold, Grant::Found))
    }

    async fn begin(session: &mut MySqlSession, isolation: Isolation) -> Result<(), Fault> {
        session
            .run(match isolation {
                Isolation::Snapshot => include_str!("begin_snapshot.sql"),
                Isolation::Committed => "START TRANSACTION",
            })
            .await?;
        session.look().await
    }

    async fn commit(session: &mut MySqlSession) -> Result<(), sqlx::Error> {
        session.run("COMMIT").await
    }

    async fn roll_back(session: &mut MySqlSession) -> Result<(), sqlx::Error> {
        session.run("ROLLBACK").await
    }

    async fn write(
        session: &mut MySqlSession,
        scope: &Scope,
        write: &SlotWrite,
        basis: Option<&Basis>,
        limit: Duration,
    ) -> Result<bool, Fault> {
        session.write(scope, write, basis, limit).await
    }

    async fn tell(_session: &mut MySqlSession, _scope: &Scope, _wake: &Wake) -> Result<(), Fault> {
        // It tells nobody: see `told`.
        Ok(())
    }

    fn told(&self, wake: Wake) {
        // No receiver is no fault: nobody waits.
        let _ = self.hints.send(wake);
    }

    fn subscribe(&self) -> Wakeups {
        self.hints.subscribe()
    }
}
