//! Where a slot is kept in its store, for a person with `redis-cli`, `etcdctl` or `sqlite3` at hand. Names only: nothing is read.

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
        // With Redlock on every master alike.
        "redis" | "redis-sentinel" | "redis-cluster" | "redlock" => {
            let mark = match name {
                "redis-cluster" => format!("cronward:{namespace}:{{{}}}@{}", slot.job(), slot.key()),
                _ => format!("cronward:{namespace}:{{{slot}}}"),
            };
            vec![
                (mark.clone(), "lease, wait or done marker"),
                (format!("{mark}:attempts"), "attempt counter"),
                (format!("{mark}:log"), "each attempt, verdict, audit"),
                (format!("{mark}:outputs"), "the end of each attempt's output"),
                (format!("{mark}:notes"), "what nodes noted"),
            ]
        }
        "etcd" => {
            let root = format!("/cronward/{namespace}");
            vec![
                (format!("{root}/mark/{slot}"), "lease, wait or done marker"),
                (format!("{root}/attempts/{slot}"), "attempt counter"),
                (format!("{root}/slot/{slot}"), "each attempt, verdict, audit"),
                (format!("{root}/output/{slot}/"), "the outputs, by their prefix"),
                (format!("{root}/note/{slot}/"), "what nodes noted, by its prefix"),
            ]
        }
        "zookeeper" => {
            // What follows the servers in the url is above everything.
            let (_, servers) = location.split_once("://").unwrap_or(("", location));
            let chroot = servers.find('/').and_then(|slash| servers.get(slash..)).unwrap_or("").trim_end_matches('/');
            let root = format!("{chroot}/cronward/{namespace}");
            vec![
                (format!("{root}/slot/{}/{}", slot.job(), slot.key()), "all but the outputs, which are below it"),
                (format!("{root}/note/{}/{}", slot.job(), slot.key()), "what nodes noted"),
                (format!("{root}/pauses"), "every job's pause"),
            ]
        }
        "memory" => vec![],
        _ => {
            let (job, start) = (slot.job(), slot.start().timestamp_millis());
            let row = format!("namespace = '{namespace}' AND job = '{job}' AND start_ms = {start}");
            vec![(location.to_owned(), "the tables slots, runs, audit and notes"), (row, "the rows")]
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
                "cronward:prod:{billing@2026-11-21T14Z}:outputs",
                "cronward:prod:{billing@2026-11-21T14Z}:notes",
            ]
        );
    }

    #[test]
    fn keys_in_etcd_are_those_that_stores_md_promises() {
        let names = names("etcd");
        assert_eq!(names.first().map(String::as_str), Some("/cronward/prod/mark/billing@2026-11-21T14Z"));
        assert_eq!(names.len(), 5);
    }

    #[test]
    fn nodes_in_zookeeper_are_those_that_stores_md_promises() {
        let slot = Slot::parse("billing", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
        for (location, chroot) in [("zookeeper://a:1,b", ""), ("zookeeper://a/ops/cron", "/ops/cron")] {
            let keys = for_store("zookeeper", &Namespace::new("prod").unwrap(), &slot, location);
            let (first, _) = keys.first().unwrap();
            assert_eq!(*first, format!("{chroot}/cronward/prod/slot/billing/2026-11-21T14Z"));
        }
    }

    #[test]
    fn a_database_is_named_with_its_row() {
        assert_eq!(
            names("sqlite"),
            ["sqlite:/var/lib/cronward.sqlite", "namespace = 'prod' AND job = 'billing' AND start_ms = 1795269600000",]
        );
    }
}
