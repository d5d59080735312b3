//! Where a slot is kept in its store, for a person with `redis-cli` or `sqlite3` at hand. Names only: nothing is read.

use crate::cli::session::Session;
use crate::job::Namespace;
use crate::slot::Slot;
use crate::store::Capability;

/// Where one slot is kept, one line each, each with what it is.
pub(crate) fn of(session: &Session, slot: &Slot) -> Vec<(String, &'static str)> {
    let Capability { name, .. } = session.store.capability();
    for_store(name, &session.address.options.namespace, slot, session.store.location())
}

/// The names that `docs/PROTOCOL.md` promises ("Keys in Redis"); for a database the file and the row.
fn for_store(name: &str, namespace: &Namespace, slot: &Slot, location: &str) -> Vec<(String, &'static str)> {
    match name {
        "redis" => {
            let mark = format!("cronward:{namespace}:{{{slot}}}");
            vec![
                (mark.clone(), "lease, wait or done marker"),
                (format!("{mark}:attempts"), "attempt counter"),
                (format!("{mark}:log"), "each attempt, verdict, audit"),
            ]
        }
        "memory" => vec![],
        _ => {
            let (job, start) = (slot.job(), slot.start().timestamp_millis());
            let row = format!("namespace = '{namespace}' AND job = '{job}' AND start_ms = {start}");
            vec![(location.to_owned(), "the tables slots, runs and audit"), (row, "the rows")]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(store: &str) -> Vec<String> {
        let slot = Slot::parse("billing", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
        let keys = for_store(store, &Namespace::new("prod").unwrap(), &slot, "sqlite:/var/lib/cronward.sqlite");
        keys.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn keys_in_redis_are_those_of_the_protocol() {
        assert_eq!(
            names("redis"),
            [
                "cronward:prod:{billing@2026-11-21T14Z}",
                "cronward:prod:{billing@2026-11-21T14Z}:attempts",
                "cronward:prod:{billing@2026-11-21T14Z}:log",
            ]
        );
    }

    #[test]
    fn a_database_is_named_with_its_row() {
        assert_eq!(
            names("sqlite"),
            ["sqlite:/var/lib/cronward.sqlite", "namespace = 'prod' AND job = 'billing' AND start_ms = 1795269600000",]
        );
    }
}
