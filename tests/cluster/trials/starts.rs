//! A store that is away, or refuses, when a command of `cronward` begins.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::manager::Manager;
use crate::place::{Ended, Place};
use crate::redis_server::RedisServer;
use crate::trials::stored;
use crate::{jobs, wait};

const UNAVAILABLE: i32 = 75;
const REFUSED: i32 = 69;

/// Commands that meet the store and end by themselves when it refuses.
const LISTINGS: [&[&str]; 3] = [&["attempts"], &["jobs"], &["show", "work"]];

pub(super) fn a_node_that_starts_without_its_store_waits_for_it_and_is_ready_only_then(place: &Place) {
    let mut server = RedisServer::start();
    server.kill();
    let mut manager = Manager::listen(place.path());
    place.jobs(&jobs::file(&jobs::recorded("work", &jobs::one_slot(wait::SOON), 0.1, 0)));
    let mut node = place.node("a", &server.url()).variable("NOTIFY_SOCKET", manager.address()).start();
    node.says("store cannot be used: trying again");
    wait::until_true("the planner beats without the store", || manager.count("WATCHDOG=1") >= 2);
    assert_eq!(manager.count("READY=1"), 0, "{:?}", manager.heard());
    assert!(node.is_running());
    server.start_again();
    wait::until_true("it is ready", || manager.count("READY=1") == 1);
    node.is_in_touch();
    let beats = manager.count("WATCHDOG=1");
    wait::until_true("the watchdog is fed", || manager.count("WATCHDOG=1") >= beats + 3);
    wait::until_true("the slot is done", || stored::is_done(&server, "work"));
    node.terminate();
    assert_eq!(node.exits().code(), Some(0));
    assert_eq!((manager.count("READY=1"), manager.count("STOPPING=1")), (1, 1), "{:?}", manager.heard());
}

pub(super) fn a_store_that_is_away_makes_listings_say_try_again(place: &Place) {
    let mut server = RedisServer::start();
    server.kill();
    store_in_file(place, &server.url());
    for listing in LISTINGS {
        says_in_one_line(&place.cronward(listing), UNAVAILABLE);
    }
}

pub(super) fn a_wrong_password_is_refused_at_once(place: &Place) {
    let server = RedisServer::start_with(&[("requirepass", "right")]);
    for url in [server.url(), server.url().replace("//", "//:wrong@")] {
        everything_is_refused(place, &url);
    }
}

pub(super) fn a_user_who_may_do_nothing_is_refused_at_once(place: &Place) {
    let server = RedisServer::start();
    server.allow(&["~*".to_owned(), "&*".to_owned(), "-@all".to_owned(), "+ping".to_owned(), "+hello".to_owned()]);
    everything_is_refused(place, &server.url().replace("//", "//cronward:secret@"));
}

pub(super) fn a_replica_takes_no_node_and_says_so(place: &Place) {
    let primary = RedisServer::start();
    let replica = RedisServer::start_with(&[("replicaof", &format!("127.0.0.1 {}", primary.port()))]);
    store_in_file(place, &replica.url());
    let ended = place.cronward(&["run", "--config", "jobs.toml"]);
    says_in_one_line(&ended, REFUSED);
    assert!(ended.stderr.contains("read-only replica"), "{ended:?}");
    // It can still be read.
    assert_eq!(place.cronward(&["attempts"]).code, 0);
}

pub(super) fn a_server_that_is_no_redis_is_refused_at_once(place: &Place) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            open.push(stream);
        }
    });
    everything_is_refused(place, &format!("redis://127.0.0.1:{port}"));
}

pub(super) fn a_key_of_somebody_else_is_refused_at_once(place: &Place) {
    let server = RedisServer::start();
    server.command(&["SET", "cronward:default:jobs", "a shopping list"]);
    everything_is_refused(place, &server.url());
}

pub(super) fn of_two_live_nodes_of_one_name_each_that_meets_the_other_warns_once(place: &Place) {
    let server = RedisServer::start();
    let mut calls = monitored(&server);
    place.jobs(&jobs::file(&jobs::recorded("work", &jobs::far_away(), 0.1, 0)));
    let [first, second] = place.nodes(["a", "a"], &server.url());
    let met = wait::until("one of them meets the other", || {
        [&first, &second]
            .into_iter()
            .find_map(|node| node.said("another live node has the same name").into_iter().next())
    });
    assert_eq!(met["level"], "WARN");
    assert!(met["other"].as_str().is_some_and(|instance| !instance.is_empty()), "{met}");
    // Each looks for the other at every sixth heartbeat.
    let mut heartbeats = BTreeMap::<String, u32>::new();
    wait::within(4 * wait::LIMIT, "each of them has looked once more, and has made a heartbeat since", || {
        for call in calls().lines().filter(|call| call.contains("EVALSHA") && call.contains(":nodes")) {
            let (_, report) = call.split_once(r#"instance\":\""#)?;
            *heartbeats.entry(report.split_once('\\')?.0.to_owned()).or_default() += 1;
        }
        (heartbeats.len() == 2 && heartbeats.values().all(|count| *count >= 8)).then_some(())
    });
    for node in [&first, &second] {
        assert!(node.said("another live node has the same name").len() < 2, "{}", node.text());
    }
}

/// What clients ask of the server from now on: each time the whole lines that have come since. Both nodes write one field, so what is
/// stored may never be seen of one of them.
fn monitored(server: &RedisServer) -> impl FnMut() -> String + use<> {
    let mut watch = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    watch.write_all(b"MONITOR\r\n").unwrap();
    watch.set_nonblocking(true).unwrap();
    let mut text = String::new();
    move || {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = watch.read(&mut piece) {
            text.push_str(&String::from_utf8_lossy(&piece[..length]));
        }
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        text.drain(..whole).collect()
    }
}

/// A `jobs.toml` that nothing is to be said of, with the store's url in a file beside it: a password on a command line or
/// in the file of jobs is warned of.
fn store_in_file(place: &Place, url: &str) {
    place.write("url", url);
    let store = format!("[store]\nop_timeout = \"10s\"\nurl_file = \"{}\"\n", place.file("url").display());
    place.jobs(&format!("{store}[jobs.work]\nschedule = \"0 * * * *\"\ncommand = [\"true\"]\n"));
}

fn everything_is_refused(place: &Place, url: &str) {
    store_in_file(place, url);
    for listing in LISTINGS {
        says_in_one_line(&place.cronward(listing), REFUSED);
    }
    says_in_one_line(&place.cronward(&["run"]), REFUSED);
    assert_eq!(place.runs().len(), 0);
}

/// It ended so, wrote one line to stderr, and did not show the password.
fn says_in_one_line(ended: &Ended, code: i32) {
    assert_eq!((ended.code, ended.stdout.as_str()), (code, ""), "{ended:?}");
    let messages: Vec<_> = ended.stderr.lines().collect();
    assert_eq!(messages.len(), 1, "{ended:?}");
    assert!(messages[0].contains("redis://") && !messages[0].contains("secret") && !messages[0].contains("wrong@"));
}
