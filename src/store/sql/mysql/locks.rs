//! How queues of locks are written, all or none: by one statement for those that nobody had used, and one for the others.

use std::time::Duration;

use super::{MySql, OWN, SERVER_TEXTS, is_duplicate};
use crate::store::sql::fault::SqlFault;
use crate::store::sql::queues::{LocksWrite, listed};
use crate::store::sql::server::{ServerSession, millis};
use crate::store::sql::session::{Session as _, values};
use crate::store::sql::slots::Scope;

impl ServerSession<MySql> {
    /// False when nothing was written. Only where it is not one statement for one row, or for such as are all made or none, it needs a
    /// transaction.
    pub(super) async fn write_locks(
        &mut self,
        scope: &Scope,
        write: &LocksWrite,
        limit: Duration,
    ) -> Result<bool, SqlFault> {
        if write.known.len() + usize::from(!write.fresh.is_empty()) < 2 {
            return self.save_locks(scope, write, limit).await;
        }
        self.run(SERVER_TEXTS.begin).await?;
        let saved = self.save_locks(scope, write, limit).await?;
        if saved {
            self.commit().await?;
        } else {
            self.roll_back().await?;
        }
        Ok(saved)
    }

    /// Those queues that are still as they were read; whether that is all of them.
    async fn save_locks(&mut self, scope: &Scope, write: &LocksWrite, limit: Duration) -> Result<bool, SqlFault> {
        for (statement, rows) in [(OWN.locks_update, &write.known), (OWN.locks_insert, &write.fresh)] {
            if rows.is_empty() {
                continue;
            }
            let values = values![scope.namespace.as_str(), listed(rows.iter())?, write.now, millis(limit)];
            match self.execute(statement, values).await {
                Ok(saved) if usize::try_from(saved) == Ok(rows.len()) => {}
                Ok(_) => return Ok(false),
                Err(error) if is_duplicate(&error) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }
}
