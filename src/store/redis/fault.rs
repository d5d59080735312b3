//! From what went wrong to a [`StoreError`]: its kind, whether the operation may have been applied, and one line that
//! says what to do. A table; nothing here decides whether to try again.
//!
//! Applied: `No` when nothing was sent, or when the server refused the whole script or its first write (a server judges
//! memory, disk and replicas at a script's first write only). `Maybe` when there was no answer, or when a script was
//! stopped by anything else, for it may have written before.

use std::time::Duration;

use redis::RedisError;

use super::decode::Corrupt;
use super::link::{LinkError, is_answer};
use super::tls::WORDS;
use crate::store::tls::TlsFault;
use crate::store::{Applied, ErrorKind, Op, StoreError};

/// The longest foreign text that becomes part of a message.
const SHOWN: usize = 160;

/// What to do where a proxy answers.
pub(super) const SERVERS: &str = "proxies are not supported, name the servers themselves (docs/stores.md)";

struct RedisFault {
    kind: ErrorKind,
    applied: Applied,
    message: String,
}

/// Whose operation failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker<'a> {
    pub(super) op: Op,
    pub(super) location: &'a str,
    /// The keys it is about, as people name them.
    pub(super) about: &'a str,
    pub(super) op_timeout: Duration,
    /// Which server is the master is asked of others: a server that has become a replica is left.
    pub(super) finds_masters: bool,
}

impl Asker<'_> {
    const fn reads_only(self) -> bool {
        matches!(self.op, Op::Inspect | Op::Output | Op::Jobs | Op::Nodes | Op::Pauses | Op::Notes | Op::Locks)
    }

    fn error(self, fault: RedisFault) -> StoreError {
        let applied = if self.reads_only() { Applied::No } else { fault.applied };
        StoreError::new(fault.kind, applied, self.op, self.location, fault.message)
    }

    /// The call has no answer.
    pub(super) fn failed(self, error: LinkError) -> StoreError {
        let (fault, source) = match error {
            LinkError::Connect(error) => (RedisFault { applied: Applied::No, ..self.fault(&error, true) }, error),
            LinkError::Call(error) => (self.fault(&error, false), error),
        };
        self.error(fault).caused_by(source)
    }

    /// The answer cannot be read.
    pub(super) fn unreadable(self, corrupt: Corrupt) -> StoreError {
        let applied = if corrupt.untouched { Applied::No } else { Applied::Maybe };
        let message = if corrupt.untouched { corrupt.message } else { format!("{}: {}", self.about, corrupt.message) };
        self.error(RedisFault { kind: ErrorKind::Corrupt, applied, message })
    }

    fn fault(self, error: &RedisError, connecting: bool) -> RedisFault {
        if is_answer(error) {
            let (code, detail) = inner(error.code().unwrap_or(""), error.detail().unwrap_or(""));
            return if self.finds_masters && matches!(code, "READONLY" | "MASTERDOWN") {
                replaced()
            } else {
                answered(code, detail, self.about)
            };
        }
        if let Some(fault) = TlsFault::of(error, &WORDS).as_ref().or_else(|| TlsFault::carried_by(error)) {
            return RedisFault { kind: fault.kind, applied: Applied::Maybe, message: fault.message.clone() };
        }
        let text = one_line(&error.to_string());
        let lower = text.to_lowercase();
        let (kind, message) = if error.is_timeout() && connecting {
            (ErrorKind::Timeout, format!("no connection within {} ms", (self.op_timeout / 2).as_millis()))
        } else if error.is_timeout() {
            (ErrorKind::Timeout, format!("no answer within {} ms", self.op_timeout.as_millis()))
        } else if lower.contains("end of input") {
            (ErrorKind::Unavailable, "the connection broke in the middle of the answer".to_owned())
        } else if error.kind() == redis::ErrorKind::Parse {
            (ErrorKind::Unsupported, format!("what answers there is not Redis: {text}"))
        } else if connecting {
            (ErrorKind::Unavailable, format!("cannot connect: {text}"))
        } else {
            (ErrorKind::Unavailable, format!("the connection broke before the answer: {text}"))
        };
        RedisFault { kind, applied: Applied::Maybe, message }
    }
}

/// In the middle of a failover: who is the master now is on its way.
fn replaced() -> RedisFault {
    let message = "this server is a replica by now: the next call goes to the master that is named then";
    RedisFault { kind: ErrorKind::Unavailable, applied: Applied::No, message: message.to_owned() }
}

/// What the server answered instead of a result.
fn answered(code: &str, detail: &str, about: &str) -> RedisFault {
    let (kind, message) = match code {
        "NOAUTH" => (ErrorKind::Denied, "it wants a password: write redis://user:password@host".to_owned()),
        "WRONGPASS" => (ErrorKind::Denied, "wrong user or password".to_owned()),
        "NOPERM" => (ErrorKind::Denied, denied(detail)),
        "READONLY" => {
            (ErrorKind::ReadOnly, "this server is a read-only replica: name the primary in the url".to_owned())
        }
        "LOADING" => (ErrorKind::Unavailable, "it is still loading its data".to_owned()),
        "BUSY" => (ErrorKind::Unavailable, "it is busy with somebody's script".to_owned()),
        "MASTERDOWN" => {
            (ErrorKind::Unavailable, "this replica has lost its primary: name the primary in the url".to_owned())
        }
        "CLUSTERDOWN" | "TRYAGAIN" => {
            (ErrorKind::Unavailable, format!("the cluster is not ready: {}", one_line(detail)))
        }
        "NOREPLICAS" => (ErrorKind::Unavailable, "too few replicas follow it (min-replicas-to-write)".to_owned()),
        "MOVED" | "ASK" | "CROSSSLOT" => (
            ErrorKind::Unsupported,
            "it is a node of a Redis Cluster: write redis+cluster://host:port (and more nodes, with commas)".to_owned(),
        ),
        "OOM" => (ErrorKind::Overloaded, "it is out of memory: free some, or raise maxmemory".to_owned()),
        "MISCONF" => (ErrorKind::Overloaded, "it cannot save to its disk and takes no writes: see its log".to_owned()),
        "WRONGTYPE" => {
            (ErrorKind::Corrupt, format!("{about}: this key, or one that begins with it, is of another type"))
        }
        _ => return other(code, detail),
    };
    RedisFault { kind, applied: Applied::No, message }
}

/// Answers whose code says little.
fn other(code: &str, detail: &str) -> RedisFault {
    let lower = detail.to_lowercase();
    let no = |kind, message: &str| RedisFault { kind, applied: Applied::No, message: message.to_owned() };
    if lower.contains("max number of clients") {
        return no(ErrorKind::Overloaded, "it has no room for one more client (maxclients)");
    }
    if lower.contains("user executing the script") || lower.contains("acl failure in script") {
        return RedisFault { kind: ErrorKind::Denied, applied: Applied::Maybe, message: denied(detail) };
    }
    if lower.contains("db index is out of range") {
        return no(ErrorKind::Unsupported, "it has no database of that number");
    }
    if lower.contains("without any password configured") || lower.contains("no password is set") {
        return no(ErrorKind::Denied, "it wants no password: leave it out of the url");
    }
    if lower.contains("wrong number of arguments for 'auth'") {
        return no(
            ErrorKind::Unsupported,
            "it is older than Redis 6 and knows no users: leave the user out of the url",
        );
    }
    let too_large = ["max request size exceeded", "exceeds maximum allowed size", "invalid bulk length"];
    if too_large.iter().any(|part| lower.contains(part)) {
        let message = format!("a request is larger than it takes: {}", one_line(detail));
        return RedisFault { kind: ErrorKind::Content, applied: Applied::No, message };
    }
    if lower.contains("unsupported command") {
        let text = format!("a proxy answers there ({}): {SERVERS}", one_line(detail));
        return no(ErrorKind::Unsupported, &text);
    }
    // Inside a script, something that was not foreseen: it may have written before.
    let applied = if lower.contains("script") { Applied::Maybe } else { Applied::No };
    RedisFault { kind: ErrorKind::Unsupported, applied, message: format!("it answers {code}: {}", one_line(detail)) }
}

fn denied(detail: &str) -> String {
    let what = match detail.split('\'').nth(1) {
        Some(command) if detail.contains("permissions to run the '") => {
            format!("run {}", one_line(command).to_uppercase())
        }
        _ if detail.contains("key") => "use the keys cronward:*".to_owned(),
        _ if detail.contains("channel") => "use the channels cronward:*".to_owned(),
        _ => "run all that the scripts need on cronward:*".to_owned(),
    };
    format!("the user may not {what}; see docs/stores.md for the ACL line")
}

/// Before Redis 7 an error inside of a script comes wrapped: `ERR Error running script (…): -OOM command not …`.
fn inner<'a>(code: &'a str, detail: &'a str) -> (&'a str, &'a str) {
    let wrapped = (code == "ERR" && detail.starts_with("Error running script")).then(|| detail.rsplit_once(": -"));
    match wrapped.flatten().and_then(|(_, error)| error.split_once(' ')) {
        Some((inner, rest)) if inner.bytes().all(|byte| byte.is_ascii_uppercase()) => (inner, rest),
        _ => (code, detail),
    }
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_answer_has_its_kind_and_its_way_out() {
        use Applied::{Maybe, No};
        use ErrorKind::{Content, Corrupt, Denied, Overloaded, ReadOnly, Unavailable, Unsupported};
        let script = "script: 5a3c, on @user_script:1.";
        let rows: &[(&str, &str, ErrorKind, Applied, &str)] = &[
            ("NOAUTH", "Authentication required.", Denied, No, "user:password"),
            ("WRONGPASS", "invalid username-password pair or user is disabled.", Denied, No, "wrong user or password"),
            ("NOPERM", "this user has no permissions to run the 'evalsha' command", Denied, No, "may not run EVALSHA"),
            ("NOPERM", "User u has no permissions to run the 'evalsha' command", Denied, No, "may not run EVALSHA"),
            ("NOPERM", "No permissions to access a key", Denied, No, "keys cronward:*"),
            ("ERR", "The user executing the script can't run this command or subcommand", Denied, Maybe, "ACL line"),
            (
                "ERR",
                "ACL failure in script: User u has no permissions to run the 'set' command",
                Denied,
                Maybe,
                "run SET",
            ),
            ("READONLY", "You can't write against a read only replica.", ReadOnly, No, "name the primary"),
            ("LOADING", "Redis is loading the dataset in memory", Unavailable, No, "loading"),
            ("BUSY", "Redis is busy running a script.", Unavailable, No, "script"),
            ("MASTERDOWN", "Link with MASTER is down", Unavailable, No, "primary"),
            ("CLUSTERDOWN", "The cluster is down", Unavailable, No, "cluster"),
            ("TRYAGAIN", "Multiple keys request during rehashing of slot", Unavailable, No, "cluster"),
            ("MOVED", "3999 127.0.0.1:6381", Unsupported, No, "Cluster"),
            ("ASK", "3999 127.0.0.1:6381", Unsupported, No, "Cluster"),
            ("CROSSSLOT", "Keys in request don't hash to the same slot", Unsupported, No, "Cluster"),
            ("NOREPLICAS", "Not enough good replicas to write.", Unavailable, No, "min-replicas-to-write"),
            ("OOM", "command not allowed when used memory > 'maxmemory'.", Overloaded, No, "maxmemory"),
            ("MISCONF", "Redis is configured to save RDB snapshots", Overloaded, No, "disk"),
            ("WRONGTYPE", "Operation against a key holding the wrong kind of value", Corrupt, No, "the key: "),
            ("ERR", "max number of clients reached", Overloaded, No, "maxclients"),
            ("ERR", "max request size exceeded. Limit: 1048576 bytes", Content, No, "larger than it takes"),
            ("ERR", "Protocol error: invalid bulk length", Content, No, "larger than it takes"),
            ("ERR", "DB index is out of range", Unsupported, No, "database"),
            (
                "ERR",
                "AUTH <password> called without any password configured for the default user.",
                Denied,
                No,
                "no password",
            ),
            ("ERR", "unsupported command 'evalsha'", Unsupported, No, "proxies are not supported"),
            ("ERR", "unknown command `EVALSHA`, with args beginning with:", Unsupported, No, "unknown command"),
            ("ERR", "Unknown Redis command called from script", Unsupported, Maybe, "Unknown Redis command"),
            (
                "ERR",
                "Error running script (call to f_0a): @user_script:1: @user_script: 1: -OOM command not allowed",
                Overloaded,
                No,
                "maxmemory",
            ),
        ];
        for (code, detail, kind, applied, part) in rows {
            for detail in [(*detail).to_owned(), format!("{detail} {script}")] {
                let (code, detail) = inner(code, &detail);
                let fault = answered(code, detail, "the key");
                assert_eq!(fault.kind, *kind, "{code} {detail}");
                assert!(fault.message.contains(part), "{code} {detail}: {}", fault.message);
                if !detail.ends_with(script) {
                    assert_eq!(fault.applied, *applied, "{code} {detail}");
                }
            }
        }
    }

    #[test]
    fn a_foreign_text_stays_one_short_line() {
        let fault = answered("ERR", &"a\r\nb\u{1b}[31m".repeat(100), "the key");
        assert!(fault.message.len() < 200);
        assert!(!fault.message.chars().any(char::is_control));
    }

    fn asked(op: Op, finds_masters: bool) -> Asker<'static> {
        Asker { op, location: "redis://h", about: "", op_timeout: Duration::from_millis(500), finds_masters }
    }

    #[test]
    fn a_replica_is_a_mistake_in_a_url_that_names_it_and_passes_where_the_master_is_looked_up() {
        let readonly = || {
            let answer = redis::parse_redis_value(b"-READONLY You can't write against a read only replica.\r\n");
            LinkError::Call(answer.and_then(redis::Value::extract_error).unwrap_err())
        };
        let fixed = asked(Op::Register, false).failed(readonly());
        assert_eq!((fixed.kind, fixed.applied), (ErrorKind::ReadOnly, Applied::No));
        let found = asked(Op::Register, true).failed(readonly());
        assert_eq!((found.kind, found.applied), (ErrorKind::Unavailable, Applied::No));
        assert!(found.is_transient() && !fixed.is_transient(), "{found}; {fixed}");
    }

    #[test]
    fn what_only_reads_was_never_applied() {
        let timed_out = || RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
        let asked = |op| asked(op, false);
        assert_eq!(asked(Op::Inspect).failed(LinkError::Call(timed_out())).applied, Applied::No);
        assert_eq!(asked(Op::Claim).failed(LinkError::Call(timed_out())).applied, Applied::Maybe);
        assert_eq!(asked(Op::Claim).failed(LinkError::Connect(timed_out())).applied, Applied::No);
    }
}
