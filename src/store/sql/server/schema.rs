//! The versions of the tables, and the way from one to the next. Only forward: tables of a newer version are left alone.

use std::future::Future;
use std::time::Duration;

use super::{Access, Dialect};
use crate::store::sql::fault::Fault;
use crate::store::{Applied, ErrorKind, Migration, Op, OpenError};

/// Making tables waits for others who do the same.
pub(in crate::store::sql) const MIGRATION_LIMIT: Duration = Duration::from_secs(60);

/// The outcome of bringing the tables up to date, within the limit, as it is told.
pub(in crate::store::sql) async fn migrated<D: Dialect>(
    location: &str,
    work: impl Future<Output = Result<Migration, Fault>>,
) -> Result<Migration, OpenError> {
    let done = tokio::time::timeout(MIGRATION_LIMIT, work).await.unwrap_or_else(|_| {
        let message = format!("no answer within {MIGRATION_LIMIT:?}: somebody keeps a lock on the tables");
        Err(Fault::known(ErrorKind::Timeout, message))
    });
    Ok(done.map_err(|fault| fault.into_error(Op::Open, Applied::Maybe, location, D::meaning))?)
}

/// Step N brings the tables from version N to N + 1.
pub(in crate::store::sql) type Steps = &'static [&'static str];

/// The steps that tables of this version lack, each with the version that it leads to.
pub(in crate::store::sql) fn pending(
    steps: Steps,
    version: i64,
    access: Access,
) -> Result<impl Iterator<Item = (i64, &'static str)>, Fault> {
    let refuse = |why: String| Err(Fault::known(ErrorKind::Unsupported, why));
    let Some(missing) = usize::try_from(version).ok().and_then(|done| steps.get(done..)) else {
        return refuse(format!(
            "its tables have version {version}, and this cronward knows up to {}: run the newer cronward",
            steps.len()
        ));
    };
    if access == Access::Use && !missing.is_empty() {
        let needed = steps.len();
        return refuse(match version {
            0 => "its tables are missing: run `cronward migrate` as a user who may create them".to_owned(),
            old => format!("its tables have version {old} of {needed}: run `cronward migrate` as their owner"),
        });
    }
    Ok((version + 1..).zip(missing.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: Steps = &["one", "two"];

    fn refusal(version: i64, access: Access) -> String {
        pending(STEPS, version, access).err().map(|fault| fault.to_string()).unwrap_or_default()
    }

    #[test]
    fn new_tables_get_every_step_and_current_ones_none() {
        let steps = |version| pending(STEPS, version, Access::Migrate).unwrap().collect::<Vec<_>>();
        assert_eq!(steps(0), [(1, "one"), (2, "two")]);
        assert_eq!(steps(1), [(2, "two")]);
        assert_eq!(steps(2), []);
    }

    #[test]
    fn who_may_not_migrate_is_told_who_has_to() {
        assert!(refusal(0, Access::Use).contains("`cronward migrate`"));
        assert!(refusal(1, Access::Use).contains("version 1 of 2"));
        assert_eq!(refusal(2, Access::Use), "");
    }

    #[test]
    fn newer_tables_are_left_alone() {
        for access in [Access::Use, Access::Migrate] {
            assert!(refusal(3, access).contains("run the newer cronward"));
            assert!(refusal(-1, access).contains("run the newer cronward"));
        }
    }
}
