//! Stores in a database server that several nodes share. What is the same for every server is here; each `Dialect` has its
//! own connection, texts, errors and way to write, and decides nothing about slots or locks.
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

mod call;
mod locks;
mod messages;
mod place;
mod pool;
mod store;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::ConnectOptions;
use url::Url;

use crate::slot::Token;
use crate::store::locks::LockWakeups;
use crate::store::sql::fault::SqlFault;
use crate::store::sql::queues::LocksWrite;
use crate::store::sql::row;
use crate::store::sql::session::{Driver, Session, Texts, Why, statements};
use crate::store::sql::slots::{Scope, SlotWrite};
use crate::store::sql::tables_are_missing;
use crate::store::tls::{TlsFault, TlsWords};
use crate::store::{Capability, ErrorKind, Finding, Migration, OpenError, StoreOptions, Wake, Wakeups, redact};
use crate::text::message;
use place::{refused, take_access};

pub(super) use place::{Access, ServerPlace};
pub(super) use store::ServerStore;

/// What a transaction sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Isolation {
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

statements! {
    /// The statements that every server has, besides those of every dialect.
    ServerTexts {
        begin,
        begin_snapshot,
        now,
        settings,
        schema_there,
        schema_version,
        schema_unlock,
        turn_begin,
        turns_purge,
    }
}

/// A server's dialect, and how its server is reached.
#[async_trait]
pub(super) trait Dialect: Debug + Send + Sync + Sized + 'static {
    /// What a connection is made with.
    type Options: ConnectOptions<Connection = Self::Connection>;
    type Connection: Driver + Debug;

    const CAPABILITY: Capability;

    /// What to write as a url.
    const FORM: &'static str;

    /// The url's parameters.
    const PARAMETERS: &'static [&'static str];

    /// Makes the tables; the version is written last.
    const SCHEMA: &'static str;

    /// What to do where TLS cannot be used at all.
    const TLS: &'static str;

    /// How the url names what TLS needs.
    const TLS_WORDS: TlsWords;

    /// What is wrong where something else answers.
    const STRANGER: &'static str;

    fn texts() -> &'static Texts;

    fn server_texts() -> &'static ServerTexts;

    /// Refuses what [`Dialect::options`] refuses for the text of the url alone.
    fn check(url: &Url) -> Result<(), String> {
        Self::options(url).map(drop)
    }

    fn options(url: &Url) -> Result<Self::Options, String>;

    /// What the server answered with this error means, and what to do; none where it did not answer.
    fn answered(error: &sqlx::Error) -> Option<(ErrorKind, &'static str)>;

    /// What an error tells about what was sent.
    fn sent(error: &sqlx::Error) -> Sent;

    /// What is to be said of a server with these settings.
    fn judge(said: &BTreeMap<String, String>) -> Vec<Finding>;

    /// For one store.
    fn at(place: &ServerPlace<Self::Options>, options: &StoreOptions) -> Self;

    /// Has the server give up every statement after `limit`, as far as it can.
    async fn greet(session: &mut ServerSession<Self>, limit: Duration) -> Result<(), SqlFault>;

    /// One process makes the tables at a time: waits as long for others who do the same.
    async fn lock_schema(session: &mut ServerSession<Self>, limit: Duration) -> Result<(), SqlFault>;

    /// Writes a change of a slot, if its row still has the version that was read, or is not there still, and no more than `limit` has
    /// passed since. False when nothing was written: somebody else's change came first.
    async fn write(
        session: &mut ServerSession<Self>,
        scope: &Scope,
        write: &SlotWrite,
        limit: Duration,
    ) -> Result<bool, SqlFault>;

    /// Tells the others once the transaction is committed, where the server can.
    async fn tell(_session: &mut ServerSession<Self>, _scope: &Scope, _wake: &Wake) -> Result<(), SqlFault> {
        Ok(())
    }

    /// Tells this process of a change that is committed, where the server does not.
    fn told(&self, _wake: Wake) {}

    fn subscribe(&self) -> Wakeups;

    /// Writes queues of locks, all or none: if each row still has the version that was read, or is not there still, and no more than
    /// `limit` has passed since. False when nothing was written. The hints go with it, where the server tells them.
    async fn write_locks(
        session: &mut ServerSession<Self>,
        scope: &Scope,
        write: &LocksWrite,
        limit: Duration,
    ) -> Result<bool, SqlFault>;

    /// Tells this process who may hold a lock now, where the server does not.
    fn told_locks(&self, _wakes: Vec<(Token, Token)>) {}

    fn listen_locks(&self, instance: Token) -> LockWakeups;
}

fn read<D: Dialect>(url: &str) -> Result<(Url, Access), OpenError> {
    let mut parsed = Url::parse(url).map_err(|error| refused(url, format!("{error}: {}", D::FORM)))?;
    let access = take_access(&mut parsed, D::PARAMETERS).map_err(|message| refused(url, message))?;
    Ok((parsed, access))
}

/// Refuses a url for its text alone.
pub(super) fn check<D: Dialect>(url: &str) -> Result<(), OpenError> {
    D::check(&read::<D>(url)?.0).map_err(|message| refused(url, message))
}

/// What a url names.
pub(super) fn resolve<D: Dialect>(url: &str) -> Result<ServerPlace<D::Options>, OpenError> {
    let (parsed, access) = read::<D>(url)?;
    let options = D::options(&parsed).map_err(|message| refused(url, message))?;
    Ok(ServerPlace { options: options.disable_statement_logging(), access, location: redact(url) })
}

/// The longest foreign text that becomes part of a message.
const SHOWN: usize = 160;

/// What an error means, with the server's own words behind.
pub(super) fn meaning<D: Dialect>(error: &sqlx::Error) -> (ErrorKind, String) {
    if let Some(fault) = TlsFault::of(error, &D::TLS_WORDS) {
        return (fault.kind, fault.message);
    }
    let (kind, advice) = D::answered(error).unwrap_or(match error {
        sqlx::Error::Tls(_) => (ErrorKind::Unsupported, D::TLS),
        sqlx::Error::Protocol(_) => (ErrorKind::Unsupported, D::STRANGER),
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::ColumnNotFound(_) | sqlx::Error::RowNotFound => {
            (ErrorKind::Corrupt, "a row is not as cronward writes it")
        }
        _ => (ErrorKind::Unavailable, "it cannot be reached, or the connection broke"),
    });
    let words = error.as_database_error().map_or_else(|| error.to_string(), |answer| answer.message().to_owned());
    (kind, format!("{advice} ({})", message(&words, SHOWN)))
}

/// One connection.
#[derive(Debug)]
pub(super) struct ServerSession<D: Dialect> {
    connection: D::Connection,
    now: DateTime<Utc>,
    /// The most bytes of one request.
    #[cfg_attr(not(feature = "mysql"), allow(dead_code, reason = "PostgreSQL sets no such limit"))]
    pub(super) packet: usize,
}

impl<D: Dialect> Session for ServerSession<D> {
    type Row = <D::Connection as Driver>::Row;
    type Connection = D::Connection;

    fn connection(&mut self) -> &mut D::Connection {
        &mut self.connection
    }

    fn texts(&self) -> &'static Texts {
        D::texts()
    }

    fn now(&self) -> DateTime<Utc> {
        self.now
    }

    fn read_at(&self, row: &Self::Row) -> Result<DateTime<Utc>, Why> {
        row::now(row)
    }
}

impl<D: Dialect> ServerSession<D> {
    /// Connects, and has the server give up whatever takes longer than `limit`.
    async fn connect(options: &D::Options, limit: Duration) -> Result<Self, SqlFault> {
        let mut session = Self { connection: options.connect().await?, now: DateTime::UNIX_EPOCH, packet: usize::MAX };
        D::greet(&mut session, limit).await?;
        Ok(session)
    }

    /// The same, with the tables checked.
    async fn open(place: &ServerPlace<D::Options>, limit: Duration) -> Result<Self, SqlFault> {
        let mut session = Self::connect(&place.options, limit).await?;
        session.bring_up(place.access, limit).await?;
        Ok(session)
    }

    /// Runs statements without values, as they stand.
    pub(super) async fn run(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        self.connection.run(sql).await
    }

    /// One number of a statement's one row.
    pub(super) async fn number(&mut self, sql: &'static str) -> Result<Option<i64>, sqlx::Error> {
        self.connection.number(sql).await
    }

    /// Begins a transaction, and looks at the server's clock.
    async fn begin(&mut self, isolation: Isolation) -> Result<(), SqlFault> {
        let texts = D::server_texts();
        self.run(match isolation {
            Isolation::Snapshot => texts.begin_snapshot,
            Isolation::Committed => texts.begin,
        })
        .await?;
        let now = self.number(texts.now).await?.unwrap_or(i64::MIN);
        let odd = || SqlFault::known(ErrorKind::Unavailable, format!("the server's clock is at {now} ms"));
        self.now = DateTime::from_timestamp_millis(now).ok_or_else(odd)?;
        Ok(())
    }

    pub(super) async fn commit(&mut self) -> Result<(), sqlx::Error> {
        self.run("COMMIT").await
    }

    pub(super) async fn roll_back(&mut self) -> Result<(), sqlx::Error> {
        self.run("ROLLBACK").await
    }

    /// Makes the tables where there are none, if that is allowed: by one of the processes that start together.
    async fn bring_up(&mut self, access: Access, limit: Duration) -> Result<Migration, SqlFault> {
        let found = self.version().await?;
        if !are_missing(found, access)? {
            return Ok(Migration { from: found, to: found });
        }
        D::lock_schema(self, limit).await?;
        let made = self.make(access).await;
        // Else the lock would stay as long as the connection.
        let unlocked = self.run(D::server_texts().schema_unlock).await;
        let made = made?;
        unlocked?;
        Ok(made)
    }

    async fn make(&mut self, access: Access) -> Result<Migration, SqlFault> {
        // Read again: another process may have done it meanwhile.
        let from = self.version().await?;
        if are_missing(from, access)? {
            self.run(D::SCHEMA).await?;
        }
        Ok(Migration { from, to: self.version().await? })
    }

    /// 0 when there are no tables.
    async fn version(&mut self) -> Result<i64, SqlFault> {
        if self.number(D::server_texts().schema_there).await? == Some(0) {
            return Ok(0);
        }
        Ok(self.number(D::server_texts().schema_version).await?.unwrap_or(0))
    }
}

/// What is to be done with tables of a version that was never released.
const WAY_OUT: &str = "stop all nodes, drop the tables whose names begin with cronward_, or name an empty database in the url, and \
                       run `cronward migrate`";

/// Whether the tables have to be made, if that is allowed.
fn are_missing(version: i64, access: Access) -> Result<bool, SqlFault> {
    let missing = tables_are_missing(version, WAY_OUT)?;
    if missing && access == Access::Use {
        let why = "its tables are missing: run `cronward migrate` as a user who may create them";
        return Err(SqlFault::known(ErrorKind::Unsupported, why.to_owned()));
    }
    Ok(missing)
}

/// What is to be said of a server that does not tell its settings.
fn unseen() -> Vec<Finding> {
    let effect = "doctor cannot warn of what a crash of the server loses";
    let fix = "run doctor again; then see the server's log";
    vec![Finding::unknown("settings", "the server does not tell them", effect, fix)]
}

/// Milliseconds as settings and statements take them; a server has 32 bits for a time-out, and 0 means none.
pub(super) fn millis(span: Duration) -> i64 {
    i64::from(i32::try_from(span.as_millis()).unwrap_or(i32::MAX).max(1))
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
