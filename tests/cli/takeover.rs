//! The README's promise of a crontab line on every machine: three machines start it in the same second, one fault strikes,
//! and the slot is done all the same. Whoever does not run it says nothing and ends with 0.
//!
//! `CRONWARD_TAKEOVER_ROUNDS` says how often each fault strikes.

use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::guarding::zone;
use crate::link::Link;
use crate::program::{Ended, Place};
use crate::proxy::Mode;
use crate::redis_server::RedisServer;
use crate::wait;

/// So many rounds at once: each has three processes, which mostly wait.
const AT_ONCE: usize = 5;

const NODES: [&str; 3] = ["a", "b", "c"];

fn rounds() -> u32 {
    std::env::var("CRONWARD_TAKEOVER_ROUNDS").map_or(10, |rounds| rounds.parse().expect("a number of rounds"))
}

/// One slot on three machines.
struct Round<'a> {
    number: u32,
    place: &'a Place,
    server: &'a RedisServer,
}

impl Round<'_> {
    fn job(&self) -> String {
        format!("push-{}", self.number)
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.place.path().join(format!("{}-{name}", self.job()))
    }

    /// The crontab's line of one machine.
    fn start(&self, node: &str, url: &str, script: &str) -> Child {
        let (zone, job) = (zone(), self.job());
        // A busy machine renews late, and is late to answer: neither is what is tried here. Who is cut off asks sooner again.
        let file = if url == self.server.url() { "patient.toml" } else { "quick.toml" };
        let slot = ["--slot", "day", "--timezone", &zone, "--lease-ttl", "8s", "--record-timeout", "10m"];
        let line = [&["exec", "--config", file, "--store", url, "--job", &job, "--node", node][..], &slot].concat();
        let mut command = self.place.command(&[&line[..], &["--", "/bin/sh", "-c", script]].concat());
        command.env("JOB", &job).env("PATH", "/usr/bin:/bin");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn start_all(&self, script: &str) -> Vec<Child> {
        NODES.iter().map(|node| self.start(node, &self.server.url(), script)).collect()
    }

    /// The slot is done, whatever it took.
    fn is_done(&self) {
        let show = ["show", &self.job(), "--config", "patient.toml", "--store", &self.server.url(), "--json"];
        let shown = self.place.run(&show);
        let slot: Value = serde_json::from_str(&shown.stdout).unwrap_or_else(|error| panic!("{error}: {shown:?}"));
        assert_eq!(slot["state"], "done", "{}: {slot}", self.job());
        let ran = std::fs::read_to_string(self.file("ran")).unwrap_or_default();
        assert!(ran.lines().any(|line| line.ends_with(" ok")), "{}: {ran}", self.job());
    }

    /// It is no failure, and who did not run the command says nothing. On a busy machine one that did may have renewed its lease late.
    fn is_quiet(&self, ended: &Ended) {
        assert_eq!((ended.code, &*ended.stdout), (0, ""), "{}: {ended:?}", self.job());
        let late = |line: &str| line.contains("was lost or in doubt");
        assert!(ended.stderr.lines().all(late), "{}: {ended:?}", self.job());
    }
}

fn ended(child: Child) -> Ended {
    child.wait_with_output().unwrap().into()
}

/// Plays this round as often as it is asked for, several at once.
fn play(round: impl Fn(&Round<'_>) + Sync) {
    let (place, server, next) = (Place::new(), RedisServer::start(), AtomicU32::new(0));
    for (file, limit) in [("quick.toml", "500ms"), ("patient.toml", "5s")] {
        let jobs = "[jobs.other]\nschedule = \"@daily\"\ncommand = \"true\"\n";
        std::fs::write(place.path().join(file), format!("[store]\nurl = \"sqlite\"\nop_timeout = \"{limit}\"\n{jobs}"))
            .unwrap();
    }
    // Scripts are known from now on, so that a claim is one request.
    let warm = Round { number: 0, place: &place, server: &server };
    warm.is_quiet(&ended(warm.start("a", &server.url(), "echo ok > $JOB-ran")));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed) + 1;
                    if number > rounds() {
                        return;
                    }
                    round(&Round { number, place: &place, server: &server });
                }
            });
        }
    });
}

#[test]
fn a_machine_that_dies_in_its_run_is_followed() {
    play(|round| {
        let script = "echo $$ $CRONWARD_NODE >> $JOB-ran
            if test $CRONWARD_ATTEMPT = 1; then echo $CRONWARD_NODE > $JOB-up; mv $JOB-up $JOB-first; exec sleep 600; fi
            echo $CRONWARD_NODE ok >> $JOB-ran";
        let mut children = round.start_all(script);
        let first = wait::until("the first of them runs", || std::fs::read_to_string(round.file("first")).ok());
        let index = NODES.iter().position(|node| *node == first.trim()).unwrap();
        let mut killed = children.remove(index);
        killed.kill().unwrap();
        killed.wait().unwrap();
        children.into_iter().for_each(|child| round.is_quiet(&ended(child)));
        round.is_done();
    });
}

#[test]
fn a_machine_whose_run_fails_is_followed() {
    play(|round| {
        let script = "sleep 0.3; test $CRONWARD_ATTEMPT != 1 || exit 9; echo $CRONWARD_NODE ok >> $JOB-ran";
        let all: Vec<Ended> = round.start_all(script).into_iter().map(ended).collect();
        let (failed, others): (Vec<_>, Vec<_>) = all.iter().partition(|ended| ended.code == 9);
        assert_eq!(failed.len(), 1, "{all:?}");
        others.into_iter().for_each(|ended| round.is_quiet(ended));
        round.is_done();
    });
}

/// The reply to the claim that is granted is lost: to that connection alone, to all for a while, or to all that machine ever has.
#[test]
fn a_machine_that_is_not_told_of_its_grant_finds_it_or_is_followed() {
    play(|round| {
        let link = Link::to(round.server.port());
        link.set(Mode::LoseRepliesTo("{push-"));
        let key = format!("cronward:default:{{{}@*", round.job());
        let script = "echo $CRONWARD_NODE ok >> $JOB-ran";
        let cut_off = round.start("a", &link.url(), script);
        wait::until_true("its claim is granted", || {
            let keys: Vec<String> = redis::from_redis_value(round.server.command(&["KEYS", &key])).unwrap();
            !keys.is_empty()
        });
        let others = NODES[1..].iter().map(|node| round.start(node, &round.server.url(), script));
        let others: Vec<Child> = others.collect();
        match round.number % 3 {
            0 => {}
            1 => link.set_new(Mode::Pass),
            _ => {
                wait::let_pass(Duration::from_millis(700));
                link.set(Mode::Pass);
            }
        }
        others.into_iter().for_each(|child| round.is_quiet(&ended(child)));
        round.is_done();
        let cut_off = ended(cut_off);
        assert!(round.number % 3 != 0 || cut_off.code == 75, "{cut_off:?}");
        if cut_off.code == 75 {
            // A machine that was not told in time says so.
            assert_eq!((&*cut_off.stdout, cut_off.stderr.lines().count()), ("", 1), "{cut_off:?}");
        } else {
            round.is_quiet(&cut_off);
        }
    });
}
