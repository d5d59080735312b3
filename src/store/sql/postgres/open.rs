//! Opens the store, and makes its tables.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::listen::Listener;
use super::place::{self, Place};
use super::session::PgSession;
use super::{fault, schema};
use crate::store::sql::fault::Fault;
use crate::store::sql::server::{Access, Dialect, Isolation, Sent, ServerStore};
use crate::store::sql::slots::{Change, Scope};
use crate::store::{
    Applied, Capability, ErrorKind, Migration, Op, OpenError, Reach, Store, StoreClock, StoreOptions, Wake, Wakeups,
};

/// How often somebody who waits looks again while no hints come.
const POLL: Duration = Duration::from_secs(5);

/// Making tables waits for others who do the same.
const MIGRATION_LIMIT: Duration = Duration::from_secs(60);

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
    let place = place::resolve(url)?;
    let listener = Listener::new(place.clone(), &options.namespace, options.op_timeout);
    let location = place.location.clone();
    Ok(Arc::new(ServerStore::new(Postgres { place, listener }, location, options)))
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
    let done = tokio::time::timeout(MIGRATION_LIMIT, work).await;
    let done = done.unwrap_or_else(|_| {
        let message = format!("no answer within {MIGRATION_LIMIT:?}: somebody keeps a lock on the tables");
        Err(Fault::known(ErrorKind::Timeout, message))
    });
    Ok(done.map_err(|fault| fault.into_error(Op::Open, Applied::Maybe, &place.location, fault::meaning))?)
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
        change: &Change<'_>,
        version: Option<i64>,
        limit: Duration,
    ) -> Result<bool, Fault> {
        session.write(scope, change, version, limit).await
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
