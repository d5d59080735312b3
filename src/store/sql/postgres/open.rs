//! Opens the store, and makes its tables.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::listen::Listener;
use super::place::{self, Place};
use super::session::PgSession;
use super::{fault, schema};
use crate::store::sql::fault::Fault;
use crate::store::sql::row::{self, Why};
use crate::store::sql::server::{
    Access, Dialect, Found, Grant, Isolation, MIGRATION_LIMIT, Sent, ServerStore, migrated,
};
use crate::store::sql::session::{Columns, Value};
use crate::store::sql::slots::{self, Scope, SlotWrite};
use crate::store::state::SlotQuery;
use crate::store::{
    Capability, ErrorKind, Migration, OpenError, Reach, Store, StoreClock, StoreOptions, Trial, Wake, Wakeups,
};

/// How often somebody who waits looks again while no hints come.
const POLL: Duration = Duration::from_secs(5);

/// What it can do.
pub(in crate::store) const CAPABILITY: Capability = Capability {
    name: "postgres",
    reach: Reach::Network,
    clock: StoreClock::Server,
    push: true,
    poll: POLL,
    durable: true,
    expires_records: false,
};

/// A store in the PostgreSQL server at `url`. Connects with the first call.
///
/// # Errors
/// [`OpenError::Url`] when the url cannot be used.
pub fn open(url: &str, options: StoreOptions) -> Result<Arc<dyn Store>, OpenError> {
    Ok(Arc::new(store(url, options)?))
}

fn store(url: &str, options: StoreOptions) -> Result<ServerStore<Postgres>, OpenError> {
    let place = place::resolve(url)?;
    let listener = Listener::new(place.clone(), &options.namespace, options.op_timeout);
    let location = place.location.clone();
    Ok(ServerStore::new(Postgres { place, listener }, location, options))
}

/// Removes what a trial wrote.
///
/// # Errors
/// [`OpenError::Url`] when the url cannot be used; [`OpenError::Store`] when the server cannot be reached, or refuses.
pub(in crate::store) async fn forget(url: &str, options: StoreOptions, trial: &Trial) -> Result<(), OpenError> {
    Ok(store(url, options)?.forget(trial).await?)
}

/// Makes the tables, or brings them up to date. The url's user becomes their owner.
///
/// # Errors
/// [`OpenError::Url`] when the url cannot be used; [`OpenError::Store`] when the server cannot be reached, or refuses.
pub async fn migrate(url: &str) -> Result<Migration, OpenError> {
    let place = place::resolve(url)?;
    let work = async {
        let mut session = PgSession::connect(&place.options, MIGRATION_LIMIT).await?;
        schema::bring_up(&mut session, Access::Migrate).await
    };
    migrated::<Postgres>(&place.location, work).await
}

/// PostgreSQL.
#[derive(Debug)]
struct Postgres {
    place: Place,
    listener: Listener,
}

#[async_trait]
impl Dialect for Postgres {
    type Session = PgSession;
    type Basis = i64;

    fn capability() -> Capability {
        CAPABILITY
    }

    fn meaning(error: &sqlx::Error) -> (ErrorKind, String) {
        fault::meaning(error)
    }

    fn sent(error: &sqlx::Error) -> Sent {
        fault::sent(error)
    }

    async fn connect(&self, limit: Duration) -> Result<PgSession, Fault> {
        let mut session = PgSession::connect(&self.place.options, limit).await?;
        schema::bring_up(&mut session, self.place.access).await?;
        Ok(session)
    }

    fn basis(row: &impl Columns) -> Result<Option<i64>, Why> {
        row::number(row, "version")
    }

    async fn grant(
        session: &mut PgSession,
        scope: &Scope,
        query: &SlotQuery,
        values: Vec<Value>,
    ) -> Result<Grant<i64>, Fault> {
        let text = concat!("WITH loaded AS (\n", include_str!("slot_load.sql"), "), ", include_str!("slot_grant.sql"));
        let (loaded, row) = slots::load_by(session, scope, query, (text, values)).await?;
        let number = |column| row::number(&row, column).map_err(|why| Fault::row(&query.slot, why));
        let found = Found { loaded, basis: number("version")?, granted: number("granted")?.is_some() };
        Ok(Grant::Found(Box::new(found)))
    }

    async fn begin(session: &mut PgSession, isolation: Isolation) -> Result<(), Fault> {
        session
            .run(match isolation {
                Isolation::Snapshot => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
                Isolation::Committed => "BEGIN ISOLATION LEVEL READ COMMITTED",
            })
            .await?;
        session.look().await
    }

    async fn commit(session: &mut PgSession) -> Result<(), sqlx::Error> {
        session.run("COMMIT").await
    }

    async fn roll_back(session: &mut PgSession) -> Result<(), sqlx::Error> {
        session.run("ROLLBACK").await
    }

    async fn write(
        session: &mut PgSession,
        scope: &Scope,
        write: &SlotWrite,
        version: Option<&i64>,
        limit: Duration,
    ) -> Result<bool, Fault> {
        session.write(scope, write, version.copied(), limit).await
    }

    async fn tell(session: &mut PgSession, scope: &Scope, wake: &Wake) -> Result<(), Fault> {
        session.tell(scope, wake).await
    }

    fn told(&self, _wake: Wake) {
        // It comes back from the server, as to everybody else.
    }

    fn subscribe(&self) -> Wakeups {
        self.listener.subscribe()
    }
}
