//! Opens the store, and makes its tables.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::fault;
use super::listen::Listener;
use super::session::{OWN, PgSession, Place, resolve};
use crate::store::sql::fault::Fault;
use crate::store::sql::server::{Access, Dialect, Isolation, MIGRATION_LIMIT, Sent, ServerStore, migrated};
use crate::store::sql::slots::{Scope, SlotWrite};
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
    let mut place = resolve(url)?;
    place.access = place.access.within(&options);
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

/// Makes the tables. The url's user becomes their owner.
///
/// # Errors
/// [`OpenError::Url`] when the url cannot be used; [`OpenError::Store`] when the server cannot be reached, or refuses.
pub async fn migrate(url: &str) -> Result<Migration, OpenError> {
    let place = resolve(url)?;
    let work = async {
        let mut session = PgSession::connect(&place.options, MIGRATION_LIMIT).await?;
        session.bring_up(Access::Migrate).await
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
        session.bring_up(self.place.access).await?;
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

    async fn write(session: &mut PgSession, scope: &Scope, write: &SlotWrite, limit: Duration) -> Result<bool, Fault> {
        session.write(scope, write, limit).await
    }

    fn turns_purge() -> &'static str {
        OWN.turns_purge
    }

    fn trial_turns() -> &'static str {
        OWN.trial_turns
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
