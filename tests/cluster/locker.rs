//! `cronward lock` as a process of its own. Its command notes when it begins and ends, and who else is at it.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::daemon::{Daemon, faketime_library};
use crate::inconclusive::inconclusive;
use crate::place::Place;
use crate::wait;

/// `hold.sh NAME [child]` goes on until there is a file `NAME.end`. All of its processes keep `NAME.alive` locked, so that others see
/// whether any of them lives. Its clock is the right one.
const SCRIPT: &str = r#"#!/bin/sh
unset LD_PRELOAD
exec 9>>"$1.alive"
flock 9
beside=
for other in *.alive; do
    [ "$other" = "$1.alive" ] || flock --shared --nonblock "$other" true 9>&- || beside="$beside ${other%.alive}"
done
echo "began $1 $(date +%s%3N 9>&-) $CRONWARD_LOCK_FENCE$beside" >>held.log
[ -z "$2" ] || sleep 600 &
until test -e "$1.end"; do sleep 0.02; done
echo "ended $1 $(date +%s%3N 9>&-)" >>held.log
"#;

/// A process that is to ask for the lock `x`.
pub(crate) struct Locker<'a> {
    place: &'a Place,
    store: &'a str,
    words: Vec<&'a str>,
    clock: Option<&'a str>,
    child: bool,
}

/// What a command under a lock has noted when it began.
#[derive(Clone, Debug)]
pub(crate) struct Began {
    pub(crate) name: String,
    pub(crate) at_ms: i64,
    /// The number of its grant.
    pub(crate) fence: u64,
    /// The others of whom some process was alive.
    pub(crate) beside: Vec<String>,
}

impl<'a> Locker<'a> {
    /// `words` are the lock and the flags.
    pub(crate) fn of(place: &'a Place, store: &'a str, words: &[&'a str]) -> Self {
        place.write("hold.sh", SCRIPT);
        // No call fails but for what the trial does.
        place.jobs("[store]\nop_timeout = \"5s\"\n");
        Self { place, store, words: words.to_vec(), clock: None, child: false }
    }

    /// With a wall clock that is off by so much (`+1h`).
    pub(crate) fn clock(self, offset: &'a str) -> Self {
        Self { clock: Some(offset), ..self }
    }

    /// With a command that has a child, which goes on for longer than the trial.
    pub(crate) fn with_child(self) -> Self {
        Self { child: true, ..self }
    }

    /// Starts it, by this name, which is its node's too.
    pub(crate) fn start(self, name: &str) -> Daemon {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronward"));
        command.arg("lock").args(&self.words).args(["--node", name, "--config", "jobs.toml", "--store", self.store]);
        command.args(["--", "/bin/sh", "hold.sh", name]).args(self.child.then_some("child"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        if let Some(offset) = self.clock {
            command.env("LD_PRELOAD", faketime_library()).env("FAKETIME", offset);
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        command.current_dir(self.place.path()).stdin(Stdio::null()).stdout(Stdio::null());
        Daemon::spawn(command, name, self.place.file(&format!("{name}.log")))
    }

    /// Starts it, and waits until its command runs.
    pub(crate) fn holds(self, name: &str) -> Daemon {
        let place = self.place;
        let mut started = self.start(name);
        let begins = || all_that_began(place).iter().any(|began| began.name == name);
        wait::until_true(&format!("{name} runs"), || begins() || !started.is_running());
        if !begins() && started.text().contains("was not renewed while it was being started") {
            inconclusive(&format!("{name} took longer than its lease to be started"));
        }
        assert!(begins(), "{name} has ended: {}", started.text());
        started
    }

    /// Starts it, and waits until so many stand in the queue of `x`.
    pub(crate) fn queues_as(self, number: usize, name: &str) -> Daemon {
        let (place, store) = (self.place, self.store);
        let started = self.start(name);
        wait::until_true(&format!("{name} is number {number}"), || queued(place, store) == number);
        started
    }
}

/// How many stand in the queue of `x`, whoever holds included.
pub(crate) fn queued(place: &Place, store: &str) -> usize {
    let told = place.cronward(&["locks", "x", "--json", "--config", "jobs.toml", "--store", store]);
    let told: serde_json::Value = serde_json::from_str(&told.stdout).unwrap_or_default();
    told["queue"].as_array().map_or(0, Vec::len)
}

/// Waits until a command runs.
pub(crate) fn began(place: &Place, name: &str) -> Began {
    wait::until(&format!("{name} runs"), || all_that_began(place).into_iter().find(|began| began.name == name))
}

/// Every command that has begun so far, in this order.
pub(crate) fn all_that_began(place: &Place) -> Vec<Began> {
    let parts = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
    let began = |parts: Vec<String>| match &parts[..] {
        [event, name, at, fence, beside @ ..] if event == "began" => {
            let (at_ms, fence) = (at.parse().unwrap(), fence.parse().unwrap());
            Some(Began { name: name.clone(), at_ms, fence, beside: beside.to_vec() })
        }
        _ => None,
    };
    noted(place.path()).lines().map(parts).filter_map(began).collect()
}

/// When a command has ended by itself.
pub(crate) fn ended_ms(place: &Place, name: &str) -> i64 {
    let begins = format!("ended {name} ");
    let text = noted(place.path());
    text.lines().find_map(|line| line.strip_prefix(&begins)).unwrap().parse().unwrap()
}

/// Lets a command end, and waits until it has released its lock and said nothing.
pub(crate) fn ends(place: &Place, name: &str, locker: &mut Daemon) {
    place.write(&format!("{name}.end"), "");
    let status = locker.exits();
    assert!(status.success() && locker.text().is_empty(), "{name}: {status}: {}", locker.text());
}

/// Whole lines alone.
fn noted(folder: &Path) -> String {
    let mut text = std::fs::read_to_string(folder.join("held.log")).unwrap_or_default();
    text.truncate(text.rfind('\n').map_or(0, |at| at + 1));
    text
}
