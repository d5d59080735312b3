//! What about a Redis server can betray the guard: asked with INFO and CONFIG GET, judged by `judge`, which is pure. Changes
//! nothing.

use std::collections::BTreeMap;

use redis::{RedisError, Value};

use super::link::{Link, LinkError, is_answer};
use crate::store::Finding;

/// The longest that a server's own words may be.
const LONGEST: usize = 200;

/// What a server says of itself: the lines of INFO, and directives of its configuration where they may be asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Said {
    info: BTreeMap<String, String>,
    /// `CONFIG GET` is no part of the documented rights: what it would tell may be missing.
    config: BTreeMap<String, String>,
}

/// What is found at one server of several, with its place.
#[cfg(any(feature = "redis-cluster", feature = "redis-redlock"))]
pub(super) fn at_place(
    place: &str,
    looked: Result<Vec<Finding>, LinkError>,
    away: impl FnOnce(&str) -> Finding,
) -> Vec<Finding> {
    let found = match looked {
        Ok(found) => found,
        Err(LinkError::Connect(error) | LinkError::Call(error)) => {
            vec![away(&crate::text::message(&format!("no answer: {error}"), LONGEST))]
        }
    };
    found.into_iter().map(|finding| Finding { found: format!("{place}: {}", finding.found), ..finding }).collect()
}

/// Asks one server.
pub(super) async fn look(link: &Link, kind: &str) -> Result<Vec<Finding>, LinkError> {
    let info = match link.call(&redis::cmd("INFO")).await {
        Ok(value) => read_info(&value),
        Err(LinkError::Call(error)) if is_answer(&error) => return Ok(vec![no_info(&error)]),
        Err(error) => return Err(error),
    };
    let mut config = BTreeMap::new();
    for directive in ["save", "min-replicas-to-write"] {
        let asked = redis::cmd("CONFIG").arg("GET").arg(directive).take();
        if let Ok(value) = link.call(&asked).await {
            config.extend(pairs(&value));
        }
    }
    Ok(judge(&Said { info, config }, kind))
}

/// What cannot be warned of.
const UNSEEN: &str = "doctor cannot warn of eviction, lost data and missing replicas";

/// The server answers, and says nothing of itself.
fn no_info(error: &RedisError) -> Finding {
    if error.code() == Some("NOPERM") {
        let fix = "ACL SETUSER cronward +info";
        return Finding::unknown("server", "this user may not ask for INFO", UNSEEN, fix);
    }
    let why = format!("INFO is refused: {}", error.detail().unwrap_or_default());
    Finding::unknown("server", crate::text::message(&why, LONGEST), UNSEEN, LOOK)
}

/// There is no answer to INFO.
pub(super) fn no_answer(error: &LinkError) -> Finding {
    let (LinkError::Connect(error) | LinkError::Call(error)) = error;
    let why = format!("INFO has no answer: {error}");
    Finding::unknown(
        "server",
        crate::text::message(&why, LONGEST),
        UNSEEN,
        "run doctor again; then see the server's log",
    )
}

/// What to do where INFO does not say it.
const LOOK: &str = "look with redis-cli: maxmemory-policy noeviction, appendonly yes";

fn untold(check: &str) -> Finding {
    Finding::unknown(check, "INFO does not say it", UNSEEN, LOOK)
}

fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        Value::VerbatimString { text, .. } => text.clone(),
        _ => String::new(),
    }
}

fn read_info(value: &Value) -> BTreeMap<String, String> {
    let text = text(value);
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()
}

fn pairs(value: &Value) -> BTreeMap<String, String> {
    let Value::Array(items) = value else { return BTreeMap::new() };
    let pair = |pair: &[Value]| if let [name, value] = pair { Some((text(name), text(value))) } else { None };
    items.chunks(2).filter_map(pair).collect()
}

impl Said {
    /// Empty where the server does not say it.
    fn word(&self, name: &str) -> &str {
        self.info.get(name).map_or("", String::as_str)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.word(name).parse().ok()
    }
}

/// What is to be said of a server that says this of itself.
fn judge(said: &Said, kind: &str) -> Vec<Finding> {
    vec![version(said), role(said), eviction(said), memory(said), persistence(said), replicas(said, kind)]
}

fn version(said: &Said) -> Finding {
    if let Some(version) = said.info.get("valkey_version") {
        return Finding::ok("version", format!("valkey {version}"));
    }
    let version = said.word("redis_version");
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_some_and(|major| major < 5) {
        let effect = "scripts are refused: nothing is claimed";
        return Finding::fault("version", format!("redis {version}"), effect, "run Redis 5 or later");
    }
    if major.is_none() {
        return untold("version");
    }
    Finding::ok("version", format!("redis {version}"))
}

fn role(said: &Said) -> Finding {
    match said.word("role") {
        "master" => Finding::ok("role", "it takes writes"),
        "" => untold("role"),
        other => Finding::fault(
            "role",
            format!("it is a {other}"),
            "it refuses writes: nothing is claimed",
            "[store] url: name the primary, or the sentinels with redis+sentinel://",
        ),
    }
}

/// With no limit nothing is evicted, whatever the policy says; the machine's memory is the limit then.
fn eviction(said: &Said) -> Finding {
    let (policy, limit) = (said.word("maxmemory_policy"), said.number("maxmemory"));
    let found = format!("maxmemory-policy {policy}");
    let effect = "a lease or done marker may be evicted: a second node may start a slot that runs";
    let fix = "redis.conf: maxmemory-policy noeviction";
    match (policy, limit) {
        ("", _) => untold("eviction"),
        ("noeviction", _) => Finding::ok("eviction", found),
        (_, Some(0)) => Finding::warning("eviction", format!("{found}, and no maxmemory yet"), effect, fix),
        (_, _) => Finding::fault("eviction", found, effect, fix),
    }
}

fn memory(said: &Said) -> Finding {
    let (Some(used), Some(limit)) = (said.number("used_memory"), said.number("maxmemory")) else {
        return untold("memory");
    };
    let mib = |bytes: u64| format!("{} MiB", bytes / (1024 * 1024));
    if limit == 0 {
        return Finding::ok("memory", format!("{} used, no maxmemory", mib(used)));
    }
    let part = used.saturating_mul(100) / limit;
    let found = format!("{} of {} used ({part} %)", mib(used), mib(limit));
    let effect = "a full server refuses claims: nothing starts until there is room";
    match part {
        0..90 => Finding::ok("memory", found),
        90..98 => Finding::warning("memory", found, effect, "redis.conf: raise maxmemory"),
        _ => Finding::fault("memory", found, effect, "redis.conf: raise maxmemory"),
    }
}

fn persistence(said: &Said) -> Finding {
    let effect = "a restart forgets leases and done markers: what was done may be done again within its slot";
    let fix = "redis.conf: appendonly yes";
    if said.word("aof_enabled").is_empty() {
        return untold("persistence");
    }
    if said.word("aof_enabled") == "1" {
        if said.word("aof_last_write_status") == "err" {
            return Finding::fault("persistence", "the append-only file cannot be written", effect, "free its disk");
        }
        return Finding::ok("persistence", "append-only file");
    }
    if said.word("rdb_last_bgsave_status") == "err" {
        return Finding::fault(
            "persistence",
            "the last snapshot failed",
            effect,
            "see the server's log; then appendonly yes",
        );
    }
    match said.config.get("save").map(String::as_str) {
        Some("") => Finding::warning("persistence", "none: neither snapshots nor an append-only file", effect, fix),
        Some(save) => Finding::warning("persistence", format!("snapshots only (save {save})"), effect, fix),
        None => Finding::warning("persistence", "no append-only file", effect, fix),
    }
}

/// Whether writes are refused while too few replicas follow. INFO tells how many do follow only where that is so, so the
/// right to ask for the configuration, which the documented user has not, is not needed.
fn waits_for_replicas(said: &Said) -> (bool, String) {
    let asked = said.config.get("min-replicas-to-write").and_then(|least| least.parse::<u64>().ok());
    match (asked, said.info.contains_key("min_slaves_good_slaves")) {
        (Some(least), _) => (least > 0, least.to_string()),
        (None, true) => (true, "is set".to_owned()),
        (None, false) => (false, "is not set".to_owned()),
    }
}

fn replicas(said: &Said, kind: &str) -> Finding {
    let Some(replicas) = said.number("connected_slaves") else { return untold("replicas") };
    let watched = kind != "redis";
    let (waits, least) = waits_for_replicas(said);
    let found = format!("{replicas}, min-replicas-to-write {least}");
    if said.number("min_slaves_good_slaves").is_some_and(|good| good < least.parse().unwrap_or(1)) {
        let effect = "the server refuses every write: nothing is claimed";
        let fix = "start its replicas, or redis.conf: min-replicas-to-write 0";
        return Finding::fault("replicas", found, effect, fix);
    }
    if replicas == 0 && watched {
        let effect = "when this server is down there is no other: nothing starts";
        return Finding::warning("replicas", found, effect, "start a replica of it");
    }
    if replicas > 0 && !waits {
        let effect = "a failover may lose what was answered last: a slot may be granted twice";
        return Finding::warning("replicas", found, effect, "redis.conf: min-replicas-to-write 1");
    }
    Finding::ok("replicas", found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Severity;

    fn said(changes: &[(&str, &str)], config: &[(&str, &str)]) -> Said {
        let healthy = [
            ("redis_version", "7.0.15"),
            ("role", "master"),
            ("maxmemory_policy", "noeviction"),
            ("maxmemory", "0"),
            ("used_memory", "1048576"),
            ("aof_enabled", "1"),
            ("connected_slaves", "0"),
        ];
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Said { info: healthy.iter().chain(changes).map(owned).collect(), config: config.iter().map(owned).collect() }
    }

    /// What is not well, as `check severity`.
    fn trouble(said: &Said, kind: &str) -> Vec<String> {
        let bad = judge(said, kind).into_iter().filter(|finding| finding.severity > Severity::Ok);
        bad.map(|finding| format!("{} {}", finding.check, finding.severity.as_str())).collect()
    }

    #[test]
    fn a_healthy_server_has_nothing_against_it() {
        assert_eq!(trouble(&said(&[], &[]), "redis"), [""; 0]);
    }

    #[test]
    fn each_thing_that_can_betray_the_guard_is_told_with_its_weight() {
        for (changes, config, wanted) in [
            (vec![("maxmemory_policy", "allkeys-lru"), ("maxmemory", "104857600")], vec![], "eviction error"),
            (vec![("maxmemory_policy", "volatile-lru")], vec![], "eviction warning"),
            (vec![("maxmemory", "1100000")], vec![], "memory warning"),
            (vec![("maxmemory", "1048576")], vec![], "memory error"),
            (vec![("aof_enabled", "0")], vec![("save", "")], "persistence warning"),
            (vec![("aof_enabled", "0"), ("rdb_last_bgsave_status", "err")], vec![], "persistence error"),
            (vec![("role", "slave")], vec![], "role error"),
            (vec![("redis_version", "4.0.1")], vec![], "version error"),
            (vec![("connected_slaves", "2")], vec![("min-replicas-to-write", "0")], "replicas warning"),
        ] {
            assert_eq!(trouble(&said(&changes, &config), "redis"), [wanted], "{changes:?}");
        }
        assert_eq!(trouble(&said(&[], &[]), "redis-sentinel"), ["replicas warning"]);
        let kept = [("min-replicas-to-write", "1")];
        assert_eq!(trouble(&said(&[("connected_slaves", "2")], &kept), "redis"), [""; 0]);
    }

    #[test]
    fn whether_replicas_are_waited_for_is_known_without_the_right_to_ask_for_the_configuration() {
        let followed = |more: &[(&str, &str)]| said(&[&[("connected_slaves", "2")], more].concat(), &[]);
        assert_eq!(trouble(&followed(&[]), "redis"), ["replicas warning"]);
        assert_eq!(trouble(&followed(&[("min_slaves_good_slaves", "2")]), "redis"), [""; 0]);
    }

    #[test]
    fn writes_that_wait_for_replicas_which_are_not_there_are_an_error() {
        let good = |count| [("min_slaves_good_slaves", count)];
        assert_eq!(trouble(&said(&good("0"), &[]), "redis"), ["replicas error"]);
        let asked = [("min-replicas-to-write", "2")];
        assert_eq!(trouble(&said(&good("1"), &asked), "redis"), ["replicas error"]);
        let followed = [("connected_slaves", "2"), ("min_slaves_good_slaves", "2")];
        assert_eq!(trouble(&said(&followed, &asked), "redis"), [""; 0]);
    }

    #[test]
    fn what_info_does_not_say_is_unknown_and_not_well() {
        let nothing = Said::default();
        let checks = ["version", "role", "eviction", "memory", "persistence", "replicas"];
        assert_eq!(trouble(&nothing, "redis"), checks.map(|check| format!("{check} warning")));
        let managed = said(&[("maxmemory_policy", "allkeys-lru"), ("maxmemory", "")], &[]);
        assert_eq!(trouble(&managed, "redis"), ["eviction error", "memory warning"]);
    }

    #[test]
    fn every_finding_that_is_not_well_says_what_can_happen_and_what_to_change() {
        let bad = said(
            &[("maxmemory_policy", "allkeys-lru"), ("maxmemory", "1"), ("aof_enabled", "0"), ("role", "slave")],
            &[],
        );
        for finding in judge(&bad, "redis").iter().filter(|finding| finding.severity > Severity::Ok) {
            assert!(finding.effect.is_some() && finding.fix.is_some(), "{finding:?}");
        }
    }

    #[test]
    fn the_answer_of_info_is_read_whatever_else_is_in_it() {
        let answer = Value::BulkString(b"# Server\r\nredis_version:7.0.15\r\n\r\nodd line\r\nrole:master\r\n".to_vec());
        let read = read_info(&answer);
        assert_eq!((read.get("role").map(String::as_str), read.len()), (Some("master"), 2));
    }
}
