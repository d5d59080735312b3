//! What is seen only at the server: of Redis, which counts the calls, the messages and the subscriptions.

use std::time::{Duration, Instant};

use crate::daemon::Daemon;
use crate::link::Link;
use crate::locker::{Locker, began, ended_ms, ends};
use crate::place::Place;
use crate::proxy::Mode;
use crate::redis_server::RedisServer;
use crate::wait;

use super::{LASTING, LONG, SHORT, TTL, crowds, each_alone, in_time, order};

/// The queue of the lock `x`.
const QUEUE: &str = "cronward:default:{default:locks}:x:queue";

pub(in crate::trials) fn who_gives_up_while_its_store_is_paused_stands_in_no_queue_afterwards(place: &Place) {
    let server = RedisServer::start();
    // The server learns its scripts: what comes late is the request, and not "unknown script".
    let mut earlier = Locker::of(place, &server.url(), &["x"]).holds("earlier");
    ends(place, "earlier", &mut earlier);
    server.command(&["CONFIG", "RESETSTAT"]);
    let (link, begun) = (Link::to(server.port()), Instant::now());
    link.set(Mode::HoldRequest("locks}:x"));
    let (url, words) = (link.url(), ["x", "--ttl", "2s", "--wait", "300ms"]);
    let asking = Locker::of(place, &url, &words);
    place.jobs("[store]\nop_timeout = \"500ms\"\n");
    let mut asking = asking.start("asking");
    link.holds_a_request();
    server.pause();
    link.set(Mode::Pass);
    let status = asking.exits();
    println!("given up after {:?}", begun.elapsed());
    assert!(!status.success(), "{status}");
    server.unpause();
    wait::until_true("it was asked, and left", || server.calls("evalsha") >= 2);
    assert_eq!(server.number(&["ZCARD", QUEUE]), 0);
    assert_eq!(order(place), ["earlier"]);
}

pub(in crate::trials) fn without_hints_a_waiter_looks_at_its_beat_and_at_the_next_lapse(place: &Place) {
    // The holder may last for ten minutes: nothing but the beat comes. The waiter has ten minutes: nothing but a lapse in front does.
    for (holder, waiter, look) in [(&LONG[..], SHORT, TTL / 3), (&LASTING[..], LONG, TTL)] {
        let server = RedisServer::start();
        server.command(&["ACL", "SETUSER", "default", "-publish"]);
        let begun = Instant::now();
        let mut first = Locker::of(place, &server.url(), holder).holds("first");
        let mut second = Locker::of(place, &server.url(), &waiter).queues_as(2, "second");
        ends(place, "first", &mut first);
        in_time(ended_ms(place, "first"), &began(place, "second"), look, begun);
        assert_eq!(server.calls("publish"), 0, "no hint went out");
        ends(place, "second", &mut second);
        each_alone(place);
        for name in ["first.end", "second.end", "held.log"] {
            std::fs::remove_file(place.file(name)).unwrap();
        }
    }
}

pub(in crate::trials) fn a_release_wakes_those_who_hold_next_and_nobody_else(place: &Place) {
    let server = RedisServer::start();
    let url = server.url();
    let reads = ["x:shared", "--ttl", "10m"];
    let mut holder = Locker::of(place, &url, &LONG).holds("holder");
    let mut queue: Vec<Daemon> = Vec::new();
    for (at, name) in ["one", "two", "r1", "r2", "r3", "last"].into_iter().enumerate() {
        let words = if name.starts_with('r') { &reads } else { &LONG };
        queue.push(Locker::of(place, &url, words).queues_as(at + 2, name));
    }
    // One that holds, and how many may hold once it has left.
    wakes(place, &server, &mut holder, &["one"]);
    wakes(place, &server, &mut queue[0], &["two"]);
    wakes(place, &server, &mut queue[1], &["r1", "r2", "r3"]);
    assert_eq!(order(place).len(), 6, "the last one waits for the readers");
}

/// One leaves: each that holds then is told once and asks once, and nobody else does.
fn wakes(place: &Place, server: &RedisServer, holder: &mut Daemon, next: &[&str]) {
    let quiet = || {
        server.command(&["CONFIG", "RESETSTAT"]);
        // Longer than waiters wait to look, once they are heard for.
        wait::let_pass(Duration::from_millis(1_200));
        server.calls("evalsha") == 0
    };
    wait::until_true("nobody asks", quiet);
    let name = holder.name.clone();
    ends(place, &name, holder);
    next.iter().for_each(|name| drop(began(place, name)));
    let woken = u64::try_from(next.len()).unwrap();
    assert_eq!((server.calls("publish"), server.calls("evalsha")), (woken, 1 + woken), "after {name}");
}

pub(in crate::trials) fn five_hundred_waiters_in_one_process_share_one_subscription(_: &Place) {
    let server = RedisServer::start();
    crowds::all_are_served(&server.url(), 500, || {
        let clients = server.text(&["CLIENT", "LIST"]).unwrap();
        let subscribed: Vec<&str> = clients.lines().filter(|line| !line.contains(" sub=0 ")).collect();
        // The channel of slots, and that of the process: not one for each waiter.
        assert!(subscribed.len() == 1 && subscribed[0].contains(" sub=2 "), "{clients}");
    });
}
