//! Opens the store, and makes its tables.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast;

use super::place::{self, Place};
use super::session::MySqlSession;
use super::{fault, schema};
use crate::store::sql::fault::Fault;
use crate::store::sql::server::{Access, Dialect, Isolation, Sent, ServerStore};
use crate::store::sql::slots::{Change, Scope};
use crate::store::{
    Applied, Capability, ErrorKind, Migration, Op, OpenError, Reach, Store, StoreClock, StoreOptions, Wake, Wakeups,
};

/// How often somebody who waits looks again: other processes' releases are not heard of.
const POLL: Duration = Duration::from_millis(500);

/// Making tables waits for others who do the same.
const MIGRATION_LIMIT: Duration = Duration::from_secs(60);

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
    let place = place::resolve(url)?;
    let location = place.location.clone();
    let dialect = MySql { place, hints: broadcast::Sender::new(HINTS) };
    Ok(Arc::new(ServerStore::new(dialect, location, options)))
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
    let done = tokio::time::timeout(MIGRATION_LIMIT, work).await;
    let done = done.unwrap_or_else(|_| {
        let message = format!("no answer within {MIGRATION_LIMIT:?}: somebody keeps a lock on the tables");
        Err(Fault::known(ErrorKind::Timeout, message))
    });
    Ok(done.map_err(|fault| fault.into_error(Op::Open, Applied::Maybe, &place.location, fault::meaning))?)
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
        change: &Change<'_>,
        version: Option<i64>,
        limit: Duration,
    ) -> Result<bool, Fault> {
        session.write(scope, change, version, limit).await
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
