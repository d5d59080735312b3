//! The MySQL store: tables in a database that every node reaches; MariaDB 10.6 or later, MySQL 8.0.4 or later.
//!
//! - **A step** is a SELECT and, where something changes, one statement that writes the slot's row on the condition of its version.
//!   Only where a run's output changes, which stands in a table of its own, it needs a short transaction.
//! - **Hints** reach this process only; others look again at an interval.
//! - **Isolation** is READ COMMITTED, set on each connection: fewer gap locks, so fewer deadlocks. A listing of many slots
//!   reads from one consistent snapshot.
//! - **Strict.** The SQL mode is set on each connection, so that nothing is cut or rounded in silence.

mod fault;
mod session;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast;

use crate::store::sql::fault::Fault;
use crate::store::sql::server::{Access, Dialect, Isolation, MIGRATION_LIMIT, Sent, ServerStore, migrated};
use crate::store::sql::session::{Columns, Session, values};
use crate::store::sql::slots::{Scope, SlotWrite};
use crate::store::{
    Capability, ErrorKind, Finding, Migration, OpenError, Reach, Store, StoreClock, StoreOptions, Trial, Wake, Wakeups,
};
use session::{MySqlSession, OWN, Place, resolve};

pub(in crate::store) use session::{FORM, check};

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

/// Looks at the server at `url` for what can betray the guard: asks its variables, which `judge` judges. Changes nothing.
///
/// # Errors
/// [`OpenError::Url`] when the url cannot be used.
pub(in crate::store) async fn examine(url: &str, options: &StoreOptions) -> Result<Vec<Finding>, OpenError> {
    let place = resolve(url)?;
    let work = async {
        let mut session = MySqlSession::connect(&place.options, options.op_timeout).await.ok()?;
        let rows = session.fetch(OWN.settings, values![]).await.ok()?;
        let pair = |row: &<MySqlSession as Session>::Row| row.text("name").ok()?.zip(row.text("setting").ok()?);
        Some(rows.iter().filter_map(pair).collect())
    };
    // That it cannot be reached is found out by whoever asks first.
    let said = tokio::time::timeout(options.op_timeout.saturating_mul(2), work).await.ok().flatten();
    Ok(said.as_ref().map(judge).unwrap_or_default())
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

/// What is to be said of a server with these variables.
fn judge(said: &BTreeMap<String, String>) -> Vec<Finding> {
    let word = |name: &str| said.get(name).map_or("", String::as_str);
    let is = |name: &str, wanted: &[&str]| wanted.iter().any(|wanted| word(name).eq_ignore_ascii_case(wanted));
    let mut findings = vec![Finding::ok("version", word("version"))];
    findings.push(if is("read_only", &["1", "ON"]) {
        let fix = "[store] url: name the primary; or SET GLOBAL read_only = OFF";
        Finding::fault("role", "read_only is on", "it refuses writes: nothing is claimed", fix)
    } else {
        Finding::ok("role", "it takes writes")
    });
    let flush = word("innodb_flush_log_at_trx_commit");
    findings.push(if flush == "1" {
        Finding::ok("persistence", "innodb_flush_log_at_trx_commit 1")
    } else {
        let effect = "a crash of the server loses what was answered last: a slot may be granted twice";
        let fix = "my.cnf: innodb_flush_log_at_trx_commit = 1";
        Finding::warning("persistence", format!("innodb_flush_log_at_trx_commit {flush}"), effect, fix)
    });
    if is("innodb_doublewrite", &["0", "OFF"]) {
        let effect = "a power cut may damage the tables: nothing is claimed";
        findings.push(Finding::warning(
            "durability",
            "innodb_doublewrite off",
            effect,
            "my.cnf: innodb_doublewrite = ON",
        ));
    }
    let logs = is("log_bin", &["1", "ON"]);
    findings.push(match (logs, word("sync_binlog")) {
        (false, _) => Finding::ok("binlog", "off: it has no replicas"),
        (true, "1") => Finding::ok("binlog", "sync_binlog 1"),
        (true, sync) => {
            let effect = "after a crash its replicas may lack what was answered last: a slot may be granted twice";
            Finding::warning("binlog", format!("sync_binlog {sync}"), effect, "my.cnf: sync_binlog = 1")
        }
    });
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Severity;

    fn trouble(changes: &[(&str, &str)]) -> Vec<String> {
        let healthy =
            [("version", "10.11"), ("read_only", "0"), ("innodb_flush_log_at_trx_commit", "1"), ("log_bin", "0")];
        let said = healthy.iter().chain(changes).map(|(name, word)| ((*name).to_owned(), (*word).to_owned())).collect();
        let bad = judge(&said).into_iter().filter(|finding| finding.severity > Severity::Ok);
        bad.map(|finding| format!("{} {}", finding.check, finding.severity.as_str())).collect()
    }

    #[test]
    fn each_variable_that_can_betray_the_guard_is_told_with_its_weight() {
        assert_eq!(trouble(&[]), [""; 0]);
        assert_eq!(trouble(&[("innodb_flush_log_at_trx_commit", "2")]), ["persistence warning"]);
        assert_eq!(trouble(&[("read_only", "1")]), ["role error"]);
        assert_eq!(trouble(&[("log_bin", "1"), ("sync_binlog", "0")]), ["binlog warning"]);
        assert_eq!(trouble(&[("log_bin", "1"), ("sync_binlog", "1")]), [""; 0]);
        assert_eq!(trouble(&[("innodb_doublewrite", "OFF")]), ["durability warning"]);
    }
}
