//! The operations as Lua scripts: one file each in `lua/`, those of the registry in one, sent by hash, and in full when the server does not know the
//! hash. A server may forget a script at any time (SCRIPT FLUSH, a restart, eviction since Redis 7.4), so every call can
//! fall back. Nothing that a user wrote is ever part of a script's text: it goes in as KEYS and ARGV.

use std::sync::LazyLock;

use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value};

use super::link::LinkError;
use super::route::Route;

/// A script and its SHA-1, by which the server knows it.
#[derive(Debug)]
pub(super) struct Script {
    source: &'static str,
    hash: String,
}

macro_rules! scripts {
    ($(($name:ident, $($part:literal)* $(=> $call:literal)?))*) => {
        $(
            pub(super) static $name: LazyLock<Script> = LazyLock::new(|| {
                Script::new(concat!($(include_str!(concat!("lua/", $part, ".lua"))),* $(, "return ", $call, "()\n")?))
            });
        )*
    };
}

// `RELEASE` is both `fail` and `give_back`: they differ in one argument.
scripts! {
    (CLAIM, "prelude" "slot" "borrowed" "claim")
    (RENEW, "prelude" "slot" "borrowed" "renew")
    (COMPLETE, "prelude" "slot" "borrowed" "output" "latest" "complete")
    (RELEASE, "prelude" "slot" "borrowed" "output" "latest" "release")
    (CLOSE, "prelude" "slot" "latest" "close")
    (RESET, "prelude" "slot" "borrowed" "latest" "reset")
    (UNLOCK, "prelude" "slot" "borrowed" "unlock")
    (MARK_DONE, "prelude" "slot" "latest" "mark_done")
    (INSPECT, "prelude" "inspect")
    (PAUSE, "prelude" "registry" => "pause")
    (RESUME, "prelude" "registry" => "resume")
    (PAUSE_OF, "prelude" "registry" => "pause_of")
    (REGISTER, "prelude" "registry" => "register")
    (HEARTBEAT, "prelude" "registry" => "heartbeat")
    (NODES, "prelude" "registry" => "nodes")
    (NOTE, "prelude" "note")
    (MESSAGES_READ, "prelude" "message" => "read_messages")
    (MESSAGES_WRITE, "prelude" "message" => "write_messages")
    (LOCK_ACQUIRE, "prelude" "lock/queue" "lock/step" "lock/acquire")
    (LOCK_RENEW, "prelude" "lock/queue" "lock/step" "lock/renew")
    (LOCK_RELEASE, "prelude" "lock/queue" "lock/step" "lock/release")
    (LOCK_EVICT, "prelude" "lock/queue" "lock/step" "lock/evict")
    (LOCK_READ, "prelude" "lock/read")
}

/// What a script is called with.
#[derive(Debug, Default)]
pub(super) struct Args {
    keys: Vec<String>,
    argv: Vec<String>,
}

impl Args {
    pub(super) fn keys(keys: impl IntoIterator<Item = String>) -> Self {
        Self { keys: keys.into_iter().collect(), argv: Vec::new() }
    }

    /// Adds one argument.
    #[must_use]
    pub(super) fn arg(mut self, arg: impl ToString) -> Self {
        self.argv.push(arg.to_string());
        self
    }
}

impl Script {
    pub(super) fn new(source: &'static str) -> Self {
        Self { source, hash: redis::Script::new(source).get_hash().to_owned() }
    }

    /// Runs it: one round trip, two when the server does not know it. Both sends are one application: NOSCRIPT means
    /// that nothing ran.
    pub(super) async fn run(&self, route: &Route, args: &Args) -> Result<Value, LinkError> {
        let key = args.keys.first().map(String::as_str);
        match route.call(key, &command("EVALSHA", &self.hash, args)).await {
            Err(LinkError::Call(error)) if is_unknown_script(&error) => {
                route.call(key, &command("EVAL", self.source, args)).await
            }
            answer => answer,
        }
    }
}

fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

fn command(verb: &str, script: &str, args: &Args) -> Cmd {
    let mut command = redis::cmd(verb);
    command.arg(script).arg(args.keys.len()).arg(&args.keys).arg(&args.argv);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_script_has_a_shebang_for_that_would_refuse_it_when_memory_is_full() {
        let of_slots = [&*CLAIM, &*RENEW, &*COMPLETE, &*RELEASE, &*CLOSE, &*RESET, &*UNLOCK, &*MARK_DONE];
        for script in of_slots.into_iter().chain([&*LOCK_ACQUIRE, &*LOCK_RENEW, &*LOCK_RELEASE, &*LOCK_EVICT]) {
            assert!(!script.source.starts_with("#!"));
            assert_eq!(script.hash.len(), 40);
        }
    }

    #[test]
    fn queues_and_what_is_remembered_of_them_are_bounded_as_the_rules_bound_them() {
        use crate::resource::MOST_ENTRIES;
        use crate::store::rules::{MOST_AUDITS, MOST_LEFT, MOST_SPENT};
        for line in [
            format!("local MOST_ENTRIES = {MOST_ENTRIES}\n"),
            format!("local MOST_SPENT, MOST_LEFT = {MOST_SPENT}, {MOST_LEFT}\n"),
        ] {
            assert!(LOCK_ACQUIRE.source.contains(&line), "{line}");
        }
        assert!(LOCK_EVICT.source.contains(&format!("MOST_AUDITS = KEYS[5], {MOST_AUDITS}\n")));
    }

    #[test]
    fn what_a_job_has_come_to_is_kept_for_as_long_as_the_contract_says() {
        let days = crate::store::LATEST_KEPT.as_secs() / 86_400;
        assert!(include_str!("lua/latest.lua").contains(&format!("local LATEST_KEPT = {days} * 86400000\n")));
    }
}
