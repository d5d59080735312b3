//! What a server's dialect has to know. It decides nothing about slots.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;

use crate::store::sql::fault::Fault;
use crate::store::sql::row::Why;
use crate::store::sql::session::{Columns, Session, Value};
use crate::store::sql::slots::{Loaded, Scope, SlotWrite};
use crate::store::state::SlotQuery;
use crate::store::{Capability, ErrorKind, Wake, Wakeups};

/// What a transaction sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store::sql) enum Isolation {
    /// Everything as of one instant; nothing is written.
    Snapshot,
    /// Each statement what was committed before it.
    Committed,
}

/// What a failed statement tells about the connection and the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store::sql) enum Sent {
    /// The server rolled the transaction back in favour of another: the same may succeed at once.
    RolledBack,
    /// The server refused it; nothing of it was written.
    Refused,
    /// The connection is gone, or nobody knows: a write may have been applied.
    Unknown,
}

/// How the tables are come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store::sql) enum Access {
    /// Missing tables are made, old ones brought up to date.
    Migrate,
    /// They have to be there.
    Use,
}

/// A slot as it was read, or granted by the way.
#[derive(Debug)]
pub(in crate::store::sql) struct Found<B> {
    pub(in crate::store::sql) loaded: Loaded,
    /// What a change is written on the condition of; none when there is no row.
    pub(in crate::store::sql) basis: Option<B>,
    /// It is granted: what the rule makes of it is written already.
    pub(in crate::store::sql) granted: bool,
}

/// What became of a claim in one statement.
#[derive(Debug)]
pub(in crate::store::sql) enum Grant<B> {
    /// The slot was read by the way, and perhaps granted.
    Found(Box<Found<B>>),
    /// Nothing was written, and nothing read.
    Refused,
    /// It was written, and the answer tells no more.
    Untold,
}

/// A server's dialect, and how its server is reached.
#[async_trait]
pub(in crate::store::sql) trait Dialect: Debug + Send + Sync + 'static {
    /// A connection.
    type Session: Session + Debug;

    /// What a write has to know of the row that it changes, its version above all.
    type Basis: Send + Sync;

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

    /// The basis in a row of `slot_load.sql`.
    fn basis(row: &impl Columns) -> Result<Option<Self::Basis>, Why>;

    /// Grants a slot in one statement, if nobody has touched it and nothing else is in the way; otherwise nothing is written.
    /// The values are those of [`slots::granting`](crate::store::sql::slots::granting).
    async fn grant(
        session: &mut Self::Session,
        scope: &Scope,
        query: &SlotQuery,
        values: Vec<Value>,
    ) -> Result<Grant<Self::Basis>, Fault>;

    /// Writes a change of the row that has this basis, none for one that is not there yet, unless more than `limit` has
    /// passed since it was read. False when nothing was written: somebody else's change came first.
    async fn write(
        session: &mut Self::Session,
        scope: &Scope,
        write: &SlotWrite,
        basis: Option<&Self::Basis>,
        limit: Duration,
    ) -> Result<bool, Fault>;

    /// Tells the others once the transaction is committed, where the server can.
    async fn tell(session: &mut Self::Session, scope: &Scope, wake: &Wake) -> Result<(), Fault>;

    /// Tells this process of a change that is committed, where the server does not.
    fn told(&self, wake: Wake);

    fn subscribe(&self) -> Wakeups;
}
