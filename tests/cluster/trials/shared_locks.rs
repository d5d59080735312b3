//! Locks in the store, and processes that die, give up, are cut off, or have a wrong clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cronward::lock::{Locks, Standing};
use cronward::{StoreOptions, open_locks};

use crate::daemon::Daemon;
#[cfg(feature = "etcd")]
use crate::etcd_server::EtcdServer;
use crate::inconclusive::found;
use crate::link::Link;
use crate::locker::{Began, Locker, all_that_began, began, ended_ms, ends, queued};
#[cfg(feature = "mysql")]
use crate::mariadb_server::MariadbServer;
use crate::place::Place;
#[cfg(feature = "postgres")]
use crate::postgres_server::PostgresServer;
use crate::proxy::Mode;
use crate::redis_server::RedisServer;
#[cfg(feature = "zookeeper")]
use crate::zookeeper_server::ZookeeperServer;
use crate::{stall, wait};

const FILE: &str = "sqlite:store.db";

/// The keys of the lock `x`.
const X: &str = "cronward:default:{default:locks}:x";
const QUEUE: &str = "cronward:default:{default:locks}:x:queue";

const TTL: Duration = Duration::from_secs(3);
const SHORT: [&str; 3] = ["x", "--ttl", "3s"];
/// Whose command is stopped by no renewal that is a little late.
const LASTING: [&str; 5] = ["x", "--ttl", "3s", "--on-lost", "continue"];
/// Of those who wait, so that no lapse and no beat of their own is what is seen.
const LONG: [&str; 3] = ["x", "--ttl", "10m"];

/// From what a lock waits for to a line of the next command: a bound of the protocol, and one second.
fn in_time(from_ms: i64, began: &Began, bound: Duration, begun: Instant) {
    let after = Duration::from_millis(u64::try_from(began.at_ms - from_ms).unwrap_or(0));
    let limit = bound + Duration::from_secs(1) + stall::allowance(begun);
    println!("{} after {after:?}, allowed {limit:?}", began.name);
    assert!(after <= limit, "{} after {after:?}, allowed {limit:?}", began.name);
}

/// Nobody has run beside another, however slow the machine was.
fn each_alone(place: &Place) {
    if let Some(second) = all_that_began(place).into_iter().find(|began| !began.beside.is_empty()) {
        found(format!("an overlap: {second:?}"));
    }
}

/// The names of those who have begun, in this order.
fn order(place: &Place) -> Vec<String> {
    all_that_began(place).into_iter().map(|began| began.name).collect()
}

pub(super) fn the_second_waiter_follows_the_first_that_was_killed_within_its_ttl(place: &Place) {
    let server = RedisServer::start();
    first_waiter_killed(place, &server.url());
}

pub(super) fn the_second_waiter_on_a_file_follows_the_first_that_was_killed_within_its_ttl(place: &Place) {
    first_waiter_killed(place, FILE);
}

fn first_waiter_killed(place: &Place, store: &str) {
    let begun = Instant::now();
    let mut holder = Locker::of(place, store, &LONG).holds("holder");
    let mut first = Locker::of(place, store, &SHORT).queues_as(2, "first");
    let mut second = Locker::of(place, store, &LONG).queues_as(3, "second");
    first.kill();
    let killed_ms = wait::now_ms();
    ends(place, "holder", &mut holder);
    in_time(killed_ms, &began(place, "second"), TTL, begun);
    ends(place, "second", &mut second);
    each_alone(place);
    assert_eq!(order(place), ["holder", "second"]);
}

pub(super) fn a_killed_reader_is_not_kept_by_one_that_lives(place: &Place) {
    let server = RedisServer::start();
    dead_reader(place, &server.url());
}

pub(super) fn a_killed_reader_on_a_file_is_not_kept_by_one_that_lives(place: &Place) {
    dead_reader(place, FILE);
}

fn dead_reader(place: &Place, store: &str) {
    let (reads, begun) = (["x:shared", "--ttl", "3s"], Instant::now());
    // The one that lives is renewed meanwhile.
    let lasting = [&reads[..], &["--on-lost", "continue"]].concat();
    let mut live = Locker::of(place, store, &lasting).holds("live");
    let mut dead = Locker::of(place, store, &reads).holds("dead");
    let mut writer = Locker::of(place, store, &LONG).queues_as(3, "writer");
    dead.kill();
    let killed = Instant::now();
    wait::until_true("the dead one is gone", || queued(place, store) == 2);
    let (after, limit) = (killed.elapsed(), TTL + Duration::from_secs(1) + stall::allowance(begun));
    assert!(after <= limit, "gone {after:?} after the kill, allowed {limit:?}");
    assert_eq!(order(place), ["live", "dead"], "the other one reads on");
    ends(place, "live", &mut live);
    in_time(ended_ms(place, "live"), &began(place, "writer"), Duration::ZERO, begun);
    ends(place, "writer", &mut writer);
    let beside = began(place, "writer").beside;
    if !beside.is_empty() {
        found(format!("it writes beside {beside:?}"));
    }
}

pub(super) fn permits_come_back_from_processes_that_died_and_are_never_more(place: &Place) {
    let server = RedisServer::start();
    permits_survive_crash(place, &server.url());
}

pub(super) fn permits_on_a_file_come_back_from_processes_that_died_and_are_never_more(place: &Place) {
    permits_survive_crash(place, FILE);
}

fn permits_survive_crash(place: &Place, store: &str) {
    const TTL: Duration = Duration::from_secs(4);
    // No late renewal stops their commands: a keeper does it at once where its `cronward lock` is dead.
    let permit = ["x:1/4", "--ttl", "4s", "--on-lost", "continue"];
    let begun = Instant::now();
    let mut dying = ["a", "b", "c", "d"].map(|name| Locker::of(place, store, &permit).holds(name));
    let waiting = ["e", "f", "g", "h"];
    let mut waiting = std::array::from_fn::<_, 4, _>(|at| {
        Locker::of(place, store, &["x:1/4", "--ttl", "10m"]).queues_as(5 + at, waiting[at])
    });
    dying.iter_mut().for_each(Daemon::kill);
    let killed_ms = wait::now_ms();
    for next in &waiting {
        in_time(killed_ms, &began(place, &next.name), TTL, begun);
    }
    for began in all_that_began(place) {
        if began.beside.len() >= 4 {
            found(format!("more than four hold: {began:?}"));
        }
        let beside_the_dead = waiting.iter().any(|next| next.name == began.name)
            && dying.iter().any(|dead| began.beside.contains(&dead.name));
        assert!(!beside_the_dead, "{began:?}");
    }
    for next in &mut waiting {
        let name = next.name.clone();
        ends(place, &name, next);
    }
}

#[cfg(feature = "postgres")]
pub(super) fn whoever_dies_on_postgresql_costs_one_ttl_and_no_permit(place: &Place) {
    let server = PostgresServer::start();
    runtime().block_on(server.database("locks"));
    deaths(place, &server.url("locks"));
}

#[cfg(feature = "mysql")]
pub(super) fn whoever_dies_on_mariadb_costs_one_ttl_and_no_permit(place: &Place) {
    let server = MariadbServer::start();
    runtime().block_on(server.database("locks"));
    deaths(place, &server.url("locks"));
}

#[cfg(feature = "etcd")]
pub(super) fn whoever_dies_on_etcd_costs_one_ttl_and_no_permit(place: &Place) {
    let server = EtcdServer::start();
    deaths(place, &server.url());
}

#[cfg(feature = "zookeeper")]
pub(super) fn whoever_dies_on_zookeeper_costs_one_ttl_and_no_permit(place: &Place) {
    let server = ZookeeperServer::start();
    deaths(place, &server.url());
}

/// One after the other, on one server: on Redis and on a file each is a trial of its own.
#[cfg(any(feature = "postgres", feature = "mysql", feature = "etcd", feature = "zookeeper"))]
fn deaths(place: &Place, store: &str) {
    for trial in [first_waiter_killed, dead_reader, permits_survive_crash] {
        trial(place, store);
        wait::until_true("the queue is empty", || queued(place, store) == 0);
        std::fs::remove_file(place.file("held.log")).unwrap();
    }
}

pub(super) fn who_gives_up_while_its_store_is_paused_stands_in_no_queue_afterwards(place: &Place) {
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

pub(super) fn without_hints_a_waiter_looks_at_its_beat_and_at_the_next_lapse(place: &Place) {
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

pub(super) fn a_release_wakes_those_who_hold_next_and_nobody_else(place: &Place) {
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

pub(super) fn five_hundred_waiters_in_one_process_share_one_subscription(_: &Place) {
    let server = RedisServer::start();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        // No call fails because the machine is slow.
        let options = StoreOptions::default().with_op_timeout(Duration::from_secs(20));
        let store = open_locks(&server.url(), options).await.unwrap();
        let locks = Locks::builder(store, "a").ttl(Duration::from_secs(120)).build().unwrap();
        let held = locks.mutex("x").unwrap().lock().await.unwrap();
        let holding = Arc::new(AtomicUsize::new(0));
        let waiters: Vec<_> = (0..500)
            .map(|_| {
                let (mutex, holding) = (locks.mutex("x").unwrap(), Arc::clone(&holding));
                tokio::spawn(async move {
                    let held = mutex.lock().await.unwrap();
                    let others = holding.fetch_add(1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    holding.fetch_sub(1, Ordering::SeqCst);
                    held.release().await.unwrap();
                    others
                })
            })
            .collect();
        wait::until_true("all of them wait", || server.number(&["ZCARD", QUEUE]) == 501);
        let clients = server.text(&["CLIENT", "LIST"]).unwrap();
        let subscribed: Vec<&str> = clients.lines().filter(|line| !line.contains(" sub=0 ")).collect();
        // The channel of slots, and that of the process: not one for each waiter.
        assert!(subscribed.len() == 1 && subscribed[0].contains(" sub=2 "), "{clients}");
        held.release().await.unwrap();
        for waiter in waiters {
            let others = tokio::time::timeout(wait::LIMIT, waiter).await.expect("each is served").unwrap();
            if others > 0 {
                found("two held at once".to_owned());
            }
        }
    });
}

/// The entry of the one that holds: its place and fence, and until when it counts.
fn entry(server: &RedisServer) -> (String, i64) {
    let all: Vec<String> = redis::from_redis_value(server.command(&["HVALS", X])).unwrap();
    let entry = all.into_iter().find(|value| value.split(' ').count() >= 8).expect("an entry");
    let parts: Vec<&str> = entry.split(' ').collect();
    (parts[..2].join(" "), parts[4].parse().unwrap())
}

pub(super) fn who_holds_while_the_store_is_away_for_less_than_the_ttl_holds_on(place: &Place) {
    let server = RedisServer::start();
    let link = Link::to(server.port());
    // With `kill` its command would be stopped from half of the TTL on, as nobody can know that the store comes back.
    let words = ["x", "--ttl", "6s", "--on-lost", "continue"];
    let mut holder = Locker::of(place, &link.url(), &words).holds("holder");
    let (number, until) = entry(&server);
    wait::until_true("a renewal", || entry(&server).1 > until);
    link.set(Mode::Refuse);
    // The next renewal comes to nothing.
    let before = entry(&server);
    wait::let_pass(Duration::from_millis(2_600));
    assert_eq!(entry(&server), before);
    link.set(Mode::Pass);
    wait::until_true("a later renewal", || entry(&server).1 > before.1);
    assert_eq!(entry(&server).0, number);
    ends(place, "holder", &mut holder);
    assert_eq!(order(place), ["holder"]);
}

pub(super) fn who_holds_while_the_store_is_away_for_longer_is_in_doubt_and_told(_: &Place) {
    let server = RedisServer::start();
    let link = Link::to(server.port());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let locks = async |url: &str, node: &str| {
            let store = open_locks(url, StoreOptions::default()).await.unwrap();
            Locks::builder(store, node).ttl(TTL).store_wait(wait::LIMIT).build().unwrap().mutex("x").unwrap()
        };
        let (mutex, others) = (locks(&link.url(), "a").await, locks(&server.url(), "b").await);
        let held = mutex.lock().await.unwrap();
        link.set(Mode::Refuse);
        let lost = tokio::time::timeout(wait::LIMIT, held.lost()).await.expect("it is told");
        assert_eq!(lost, Standing::InDoubt);
        // Nobody came: it is held after all.
        link.set(Mode::Pass);
        wait::until_true("it holds again", || held.standing() == Standing::Held);
        link.set(Mode::Refuse);
        let other = tokio::time::timeout(wait::LIMIT, others.lock()).await.expect("it lapses").unwrap();
        if held.standing() == Standing::Held {
            found("both believe that they hold".to_owned());
        }
        assert!(other.fence() > held.fence());
        link.set(Mode::Pass);
        wait::until_true("its loss is told", || held.standing() == Standing::Lost);
        assert_eq!(held.taken_by().unwrap().node.as_str(), "b");
    });
}

pub(super) fn who_may_go_on_while_the_store_is_away_is_told_of_the_overlap(place: &Place) {
    let server = RedisServer::start();
    let link = Link::to(server.port());
    let mut holder = Locker::of(place, &link.url(), &LASTING).holds("holder");
    let _next = Locker::of(place, &server.url(), &LONG).queues_as(2, "next");
    link.set(Mode::Refuse);
    assert_eq!(began(place, "next").beside, ["holder"], "it goes on");
    link.set(Mode::Pass);
    place.write("holder.end", "");
    let status = holder.exits();
    let told = holder.text();
    assert!(status.success(), "{status}: {told}");
    let line = "x: the lock was lost or its renewal was overdue; since then it was held by next (sh); another holder may have overlapped\n";
    assert!(told.contains(line), "{told}");
}

pub(super) fn an_entry_that_is_evicted_is_told_and_the_commands_group_is_killed(place: &Place) {
    let server = RedisServer::start();
    let url = server.url();
    let mut holder = Locker::of(place, &url, &["x", "--ttl", "6s"]).with_child().holds("holder");
    let begun = Instant::now();
    let (flags, store) = (["--yes", "--reason", "it hangs", "--config", "jobs.toml"], ["--store", &*url]);
    let unlocked = place.cronward(&[&["unlock", "--lock", "x"], &flags[..], &store].concat());
    assert_eq!(unlocked.code, 0, "{unlocked:?}");
    let status = holder.exits();
    let (after, limit) = (begun.elapsed(), Duration::from_secs(4) + stall::allowance(begun));
    assert_eq!(status.code(), Some(76), "{}", holder.text());
    assert!(holder.text().contains("; the command was killed\n"), "{}", holder.text());
    // Its next renewal is told, and it is stopped at once: a third of its TTL, and a second to stop what it has left.
    assert!(after <= limit, "killed {after:?} after the eviction, allowed {limit:?}");
    let mut next = Locker::of(place, &url, &LONG).holds("next");
    ends(place, "next", &mut next);
    each_alone(place);
}

pub(super) fn a_cut_off_holders_group_is_dead_before_another_holds(place: &Place) {
    let server = RedisServer::start();
    let link = Link::to(server.port());
    // TERM comes more than two seconds before it lapses: enough for any machine that trials are judged on.
    let mut holder = Locker::of(place, &link.url(), &["x", "--ttl", "5s"]).with_child().holds("holder");
    let mut next = Locker::of(place, &server.url(), &LONG).queues_as(2, "next");
    link.set(Mode::Refuse);
    assert_eq!(began(place, "next").beside, [""; 0], "its group was alive when the next one began");
    link.set(Mode::Pass);
    assert_eq!(holder.exits().code(), Some(76), "{}", holder.text());
    assert!(holder.text().contains("; the command was killed\n"), "{}", holder.text());
    ends(place, "next", &mut next);
}

pub(super) fn clocks_that_are_off_by_an_hour_change_neither_order_nor_lapses(place: &Place) {
    let server = RedisServer::start();
    wrong_clocks(place, &server.url());
}

#[cfg(feature = "postgres")]
pub(super) fn clocks_that_are_off_by_an_hour_change_nothing_on_postgresql(place: &Place) {
    let server = PostgresServer::start();
    runtime().block_on(server.database("locks"));
    wrong_clocks(place, &server.url("locks"));
}

#[cfg(feature = "mysql")]
pub(super) fn clocks_that_are_off_by_an_hour_change_nothing_on_mariadb(place: &Place) {
    let server = MariadbServer::start();
    runtime().block_on(server.database("locks"));
    wrong_clocks(place, &server.url("locks"));
}

#[cfg(feature = "zookeeper")]
pub(super) fn clocks_that_are_off_by_an_hour_change_nothing_on_zookeeper(place: &Place) {
    let server = ZookeeperServer::start();
    wrong_clocks(place, &server.url());
}

/// For what makes a server ready.
#[cfg(any(feature = "postgres", feature = "mysql"))]
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// The store's clock alone counts. Not so on a file, which has the clock of whoever opens it, nor in etcd, which tells no time.
fn wrong_clocks(place: &Place, url: &str) {
    let begun = Instant::now();
    let of = |words: &[&'static str]| Locker::of(place, url, words);
    let mut holder = of(&LASTING).clock("-1h").holds("holder");
    let mut ahead = of(&SHORT).clock("+1h").queues_as(2, "ahead");
    let mut dies = of(&SHORT).clock("-1h").queues_as(3, "dies");
    let mut behind = of(&SHORT).clock("-1h").queues_as(4, "behind");
    let mut right = of(&SHORT).queues_as(5, "right");
    // Nobody lapses who is renewed, and nobody is overtaken.
    wait::let_pass(TTL + Duration::from_millis(500));
    assert_eq!((order(place), queued(place, url)), (vec!["holder".to_owned()], 5));
    ends(place, "holder", &mut holder);
    began(place, "ahead");
    dies.kill();
    // Who dies lapses, waiting or holding, an hour ahead or behind.
    ahead.kill();
    let killed_ms = wait::now_ms();
    in_time(killed_ms, &began(place, "behind"), TTL, begun);
    ends(place, "behind", &mut behind);
    in_time(ended_ms(place, "behind"), &began(place, "right"), Duration::ZERO, begun);
    ends(place, "right", &mut right);
    assert_eq!(order(place), ["holder", "ahead", "behind", "right"]);
    // A command whose keeper's clock is wrong dies with its lease all the same.
    assert!(all_that_began(place).iter().all(|began| began.beside.is_empty()), "{:?}", all_that_began(place));
}
