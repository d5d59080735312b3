//! The PostgreSQL store: tables in a database that every node reaches; version 12 or later.
//!
//! - **A step** is a SELECT and, where something changes, one statement that writes the slot's row, the run's output and
//!   the hint together, or nothing: two round trips, and no transaction is open between them.
//! - **Hints** come by LISTEN on a connection of its own; NOTIFY is part of the writing statement, so none is sent for what was
//!   not committed.
//! - **Isolation** is READ COMMITTED, set on each connection: each statement sees what was committed before it, and a
//!   conditional write judges the row as it is when its lock is there.

mod fault;
mod listen;
mod session;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::store::sql::fault::Fault;
use crate::store::sql::server::{Access, Dialect, Isolation, MIGRATION_LIMIT, Sent, ServerStore, migrated};
use crate::store::sql::session::{Columns, Session, values};
use crate::store::sql::slots::{Scope, SlotWrite};
use crate::store::{
    Capability, ErrorKind, Finding, Migration, OpenError, Reach, Store, StoreClock, StoreOptions, Trial, Wake, Wakeups,
};
use listen::Listener;
use session::{OWN, PgSession, Place, resolve};

pub(in crate::store) use session::{FORM, check};

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

/// Looks at the server at `url` for what can betray the guard: asks its settings, which `judge` judges. Changes nothing.
///
/// # Errors
/// [`OpenError::Url`] when the url cannot be used.
pub(in crate::store) async fn examine(url: &str, options: &StoreOptions) -> Result<Vec<Finding>, OpenError> {
    let place = resolve(url)?;
    let work = async {
        let mut session = PgSession::connect(&place.options, options.op_timeout).await.ok()?;
        let rows = session.fetch(OWN.settings, values![]).await.ok()?;
        let pair = |row: &<PgSession as Session>::Row| row.text("name").ok()?.zip(row.text("setting").ok()?);
        Some(rows.iter().filter_map(pair).collect())
    };
    // That it cannot be reached is found out by whoever asks first.
    let said = tokio::time::timeout(options.op_timeout.saturating_mul(2), work).await.ok().flatten();
    Ok(said.as_ref().map(judge).unwrap_or_default())
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

/// What is to be said of a server with these settings.
fn judge(said: &BTreeMap<String, String>) -> Vec<Finding> {
    let word = |name: &str| said.get(name).map_or("", String::as_str);
    let mut findings = vec![Finding::ok("version", format!("postgresql {}", word("server_version")))];
    findings.push(if word("in_recovery") == "true" {
        let fix = "[store] url: name the primary, or add target_session_attrs to what chooses it";
        Finding::fault("role", "it is a standby", "it refuses writes: nothing is claimed", fix)
    } else if word("default_transaction_read_only") == "on" {
        let fix = "ALTER ROLE cronward SET default_transaction_read_only = off";
        Finding::fault("role", "transactions are read-only", "it refuses writes: nothing is claimed", fix)
    } else {
        Finding::ok("role", "it takes writes")
    });
    let loses = "a crash of the server loses what was answered last: a slot may be granted twice";
    findings.push(match word("synchronous_commit") {
        "off" => {
            let fix = "ALTER ROLE cronward SET synchronous_commit = on";
            Finding::warning("persistence", "synchronous_commit off", loses, fix)
        }
        how => Finding::ok("persistence", format!("synchronous_commit {how}")),
    });
    for setting in ["fsync", "full_page_writes"] {
        if word(setting) == "off" {
            let effect = "a power cut may damage the tables: nothing is claimed, or a slot twice";
            let fix = format!("postgresql.conf: {setting} = on");
            findings.push(Finding::fault("durability", format!("{setting} off"), effect, fix));
        }
    }
    findings.push(match word("synchronous_standby_names") {
        "" => Finding::ok("replicas", "none is waited for: a failover may lose what was answered last"),
        names => Finding::ok("replicas", format!("synchronous_standby_names {names}")),
    });
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Severity;

    fn trouble(changes: &[(&str, &str)]) -> Vec<String> {
        let healthy =
            [("server_version", "15.9"), ("synchronous_commit", "on"), ("fsync", "on"), ("in_recovery", "false")];
        let said = healthy.iter().chain(changes).map(|(name, word)| ((*name).to_owned(), (*word).to_owned())).collect();
        let bad = judge(&said).into_iter().filter(|finding| finding.severity > Severity::Ok);
        bad.map(|finding| format!("{} {}", finding.check, finding.severity.as_str())).collect()
    }

    #[test]
    fn each_setting_that_can_betray_the_guard_is_told_with_its_weight() {
        assert_eq!(trouble(&[]), [""; 0]);
        assert_eq!(trouble(&[("synchronous_commit", "off")]), ["persistence warning"]);
        assert_eq!(trouble(&[("fsync", "off")]), ["durability error"]);
        assert_eq!(trouble(&[("full_page_writes", "off")]), ["durability error"]);
        assert_eq!(trouble(&[("in_recovery", "true")]), ["role error"]);
        assert_eq!(trouble(&[("default_transaction_read_only", "on")]), ["role error"]);
    }
}
