//! The way from ShedLock that docs/migrate/shedlock.md describes: the statements of that page, between those of a service's replicas.

use super::database::Database;
use super::dialect::{CLOSE_SHEDLOCK, Connection, SHEDLOCK_INSERT, SHEDLOCK_NOW, SHEDLOCK_TABLE, SHEDLOCK_UNTIL};
use crate::support::sql_server::documented_block;

/// By which a replica judges: its own, or with `usingDbTime()` the server's.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Clock {
    Own,
    Server,
}

/// One replica of the service.
struct Replica {
    session: Connection,
    clock: Clock,
    name: &'static str,
    /// Kept until the replica restarts: it never inserts a row that it knows of.
    knows_the_row: bool,
}

impl Replica {
    async fn start(database: &Database, clock: Clock, name: &'static str) -> Self {
        Self { session: database.connect().await, clock, name, knows_the_row: false }
    }

    /// Whether it gets the lock at this hour of its own clock.
    async fn locks(&mut self, hour: &str) -> bool {
        let (now, until) = self.times(hour);
        let insert = SHEDLOCK_INSERT.replace("ROW", &format!("'billing', {until}, {now}, '{}'", self.name));
        if !std::mem::replace(&mut self.knows_the_row, true) && self.changes(insert).await {
            return true;
        }
        let set = format!("lock_until = {until}, locked_at = {now}, locked_by = '{}'", self.name);
        self.changes(format!("UPDATE shedlock SET {set} WHERE name = 'billing' AND lock_until <= {now}")).await
    }

    /// The end of a run: by its own clock it asks for no name.
    async fn unlocks(&mut self, hour: &str) -> bool {
        let (now, _) = self.times(hour);
        let mine = format!(" AND locked_by = '{}'", self.name);
        let whose = if self.clock == Clock::Own { "" } else { &mine };
        self.changes(format!("UPDATE shedlock SET lock_until = {now} WHERE name = 'billing'{whose}")).await
    }

    fn times(&self, hour: &str) -> (String, String) {
        match self.clock {
            Clock::Own => (format!("'{hour}:00:00'"), format!("'{hour}:50:00'")),
            Clock::Server => (SHEDLOCK_NOW.to_owned(), SHEDLOCK_UNTIL.to_owned()),
        }
    }

    /// Whether a row was changed.
    async fn changes(&mut self, sql: String) -> bool {
        let done = sqlx::raw_sql(sqlx::AssertSqlSafe(sql.clone())).execute(&mut self.session).await;
        done.unwrap_or_else(|error| panic!("{sql}: {error}")).rows_affected() > 0
    }
}

fn of_the_page(block: &str) -> String {
    documented_block("docs/migrate/shedlock.md", block)
}

async fn table(clock: Clock) -> (Database, [Replica; 2]) {
    let database = Database::new().await;
    database.sql(SHEDLOCK_TABLE).await;
    let replicas = [Replica::start(&database, clock, "a").await, Replica::start(&database, clock, "b").await];
    (database, replicas)
}

#[tokio::test]
async fn the_documented_row_keeps_every_replica_out_until_the_documented_way_back() {
    for clock in [Clock::Own, Clock::Server] {
        let (database, [mut a, mut b]) = table(clock).await;
        assert!(a.locks("2026-11-26 09").await && !b.locks("2026-11-26 09").await, "{clock:?}: one of two runs");
        assert!(a.unlocks("2026-11-26 09").await);
        database.sql(&of_the_page(CLOSE_SHEDLOCK)).await;
        let mut fresh = Replica::start(&database, clock, "c").await;
        for hour in ["2026-11-26 10", "2037-11-26 10"] {
            for replica in [&mut a, &mut b, &mut fresh] {
                assert!(!replica.locks(hour).await, "{clock:?}: {} got the lock at {hour}", replica.name);
            }
        }
        database.sql(&of_the_page("open.sql")).await;
        assert!(b.locks("2026-11-26 11").await && !a.locks("2026-11-26 11").await, "{clock:?}: one of two runs again");
    }
}

#[tokio::test]
async fn the_documented_row_closes_a_task_that_shedlock_has_never_locked() {
    for clock in [Clock::Own, Clock::Server] {
        let (database, [mut a, _]) = table(clock).await;
        database.sql(&of_the_page(CLOSE_SHEDLOCK)).await;
        assert!(!a.locks("2026-11-26 09").await, "{clock:?}");
        database.sql(&of_the_page("open.sql")).await;
        assert!(a.locks("2026-11-26 10").await, "{clock:?}");
    }
}

/// Why the page has the order that it has.
#[tokio::test]
async fn a_run_that_ends_after_the_documented_row_opens_it_where_no_name_is_asked_for() {
    for clock in [Clock::Own, Clock::Server] {
        let (database, [mut a, mut b]) = table(clock).await;
        assert!(a.locks("2026-11-26 09").await);
        database.sql(&of_the_page(CLOSE_SHEDLOCK)).await;
        assert_eq!(a.unlocks("2026-11-26 09").await, clock == Clock::Own);
        assert_eq!(b.locks("2026-11-26 10").await, clock == Clock::Own, "{clock:?}");
    }
}
