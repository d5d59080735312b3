//! Opens the store, and makes its tables.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast;

use super::fault;
use super::session::{MySqlSession, OWN, Place, resolve};
use crate::store::sql::fault::Fault;
use crate::store::sql::server::{Access, Dialect, Isolation, MIGRATION_LIMIT, Sent, ServerStore, migrated};
use crate::store::sql::slots::{Scope, SlotWrite};
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
    let mut place = resolve(url)?;
    place.access = place.access.within(&options);
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

/// Makes the tables.
///
/// # Errors
/// [`OpenError::Url`] when the url cannot be used; [`OpenError::Store`] when the server cannot be reached, or refuses.
pub async fn migrate(url: &str) -> Result<Migration, OpenError> {
    let place = resolve(url)?;
    let work = async {
        let mut session = MySqlSession::connect(&place.options, MIGRATION_LIMIT).await?;
        session.bring_up(Access::Migrate, MIGRATION_LIMIT).await
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
        session.bring_up(self.place.access, limit).await?;
        Ok(session)
    }

    async fn begin(session: &mut MySqlSession, isolation: Isolation) -> Result<(), Fault> {
        session
            .run(match isolation {
                Isolation::Snapshot => OWN.begin_snapshot,
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
        limit: Duration,
    ) -> Result<bool, Fault> {
        session.write(scope, write, limit).await
    }

    fn turns_purge() -> &'static str {
        OWN.turns_purge
    }

    fn trial_turns() -> &'static str {
        OWN.trial_turns
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
