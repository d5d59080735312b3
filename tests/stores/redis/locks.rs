//! Locks on a real server: how many calls and how much work they are, what stands at their keys, and what its loss comes to.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use cronward::resource::{AcquireRequest, Acquired, Demand, LockRefusal, LockRelease, LockRenewal, OwnerId};
use cronward::store::redis::RedisStore;
use cronward::store::{Applied, ErrorKind, Intervention, LockStore, Op, StoreOptions};

use crate::lock_words::{each_is_served_once, held, left, lock, next_ready, read, request, waits, write};
use crate::redis::{audit, store};
use crate::redis_server::RedisServer;

/// What the keys of the lock `x` begin with.
const X: &str = "cronward:default:{default:locks}:x";

/// The names of all locks.
const NAMES: &str = "cronward:default:{default:locks}";

#[tokio::test]
async fn taking_and_leaving_is_two_calls_however_many_locks_are_named() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let warm = held(&store, &request(1, &[write("warm")])).await;
    left(&store, &warm).await;
    for (number, names) in [(2, vec!["x"]), (3, vec!["x", "y", "z"])] {
        server.command(&["CONFIG", "RESETSTAT"]);
        let demands: Vec<_> = names.into_iter().map(write).collect();
        let hold = held(&store, &request(number, &demands)).await;
        assert_eq!(left(&store, &hold).await, LockRelease::Released);
        assert_eq!((server.calls("evalsha"), server.calls("eval")), (2, 0));
    }
}

#[tokio::test]
async fn of_those_who_want_locks_at_once_one_holds_and_nobody_is_lost() {
    let server = RedisServer::start();
    each_is_served_once(&[Arc::new(store(&server).await), Arc::new(store(&server).await)]).await;
}

/// The lines by which a server tells what it does meanwhile, each command of a script included.
fn watched(server: &RedisServer) -> impl FnOnce() -> Vec<String> + use<> {
    let mut watch = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    watch.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    watch.write_all(b"MONITOR\r\n").unwrap();
    let mut lines = BufReader::new(watch).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "+OK");
    let mut end = server.connect();
    move || {
        redis::cmd("ECHO").arg("the end").exec(&mut end).unwrap();
        lines.map(Result::unwrap).take_while(|line| !line.contains("the end")).collect()
    }
}

#[tokio::test]
async fn a_waiters_beat_is_the_same_work_behind_eight_and_behind_a_thousand() {
    let server = RedisServer::start();
    let store = store(&server).await;
    held(&store, &request(1, &[write("x")])).await;
    let mut work = Vec::new();
    for (first, last) in [(2, 9), (10, 1_000)] {
        for number in first..=last {
            waits(&store, &request(number, &[write("x")])).await;
        }
        // One that makes its entry last: it writes, which a look at a fresh one does not.
        let beat = request(last, &[write("x")]);
        let beat = AcquireRequest { ttl: beat.ttl * 2, ..beat };
        let lines = watched(&server);
        assert_eq!(waits(&store, &beat).await.0, u32::try_from(last).unwrap() - 1);
        let lines = lines();
        assert!(lines.len() > 5, "{lines:?}");
        let bytes: usize = lines.iter().map(String::len).sum();
        // Eight others at the most: of each an entry is asked for.
        let entries: usize = lines.iter().map(|line| line.matches("\"000000000000000000000000").count()).sum();
        work.push((lines.len(), entries, bytes));
    }
    let [(few, few_entries, few_bytes), (many, many_entries, many_bytes)] = work[..] else { unreachable!() };
    assert!(many <= few + 1 && many_entries <= few_entries + 2, "{work:?}");
    assert!(many_bytes <= few_bytes + 500, "{work:?}");
}

/// The commands that writes of a lock are made of.
const WRITES: [&str; 6] = ["hset", "zadd", "pexpire", "hdel", "zrem", "set"];

#[tokio::test]
async fn who_looks_again_while_its_entry_is_fresh_writes_nothing_and_later_its_entries_last() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let hold = held(&store, &request(1, &[write("x")])).await;
    let waiting = request(2, &[write("x"), write("y")]);
    waits(&store, &waiting).await;
    let y = "cronward:default:{default:locks}:y";
    let entry = |key: &str| server.text(&["HGET", key, &waiting.token.to_string()]).unwrap();
    let until = |key: &str| entry(key).split(' ').nth(4).unwrap().parse::<i64>().unwrap();
    let fresh = [entry(X), entry(y)];
    server.command(&["CONFIG", "RESETSTAT"]);
    assert_eq!(waits(&store, &waiting).await.0, 1);
    assert_eq!(WRITES.map(|command| server.calls(command)), [0; 6]);
    assert_eq!([entry(X), entry(y)], fresh);

    // A quarter of its TTL is over in one of the locks: there it lasts again, and in the other no shorter.
    let [x_until, y_until] = [X, y].map(until);
    let older = x_until - i64::try_from(waiting.ttl.as_millis()).unwrap() / 4;
    let shortened = entry(X).replace(&x_until.to_string(), &older.to_string());
    server.command(&["HSET", X, &waiting.token.to_string(), &shortened]);
    waits(&store, &waiting).await;
    assert!(until(X) >= x_until && until(y) >= y_until, "{}", entry(X));

    // Somebody in front has lapsed: whoever looks takes it out.
    let last = entry(X);
    let past = server.text(&["HGET", X, &hold.token.to_string()]).unwrap();
    let now = past.split(' ').nth(4).unwrap().to_owned();
    server.command(&["HSET", X, &hold.token.to_string(), &past.replace(&now, "1")]);
    assert!(matches!(store.acquire(&waiting).await.unwrap(), Acquired::Held { .. }), "{last}");
    assert_eq!(server.number(&["HEXISTS", X, &hold.token.to_string()]), 0);
}

#[tokio::test]
async fn the_keys_have_their_documented_names_and_every_one_has_a_ttl() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let asked = request(1, &[write("x")]).labelled("nightly report");
    let hold = held(&store, &asked).await;
    let waiting = request(2, &[write("x")]);
    waits(&store, &waiting).await;
    let (token, fence) = (asked.token, hold.fence);
    let entry = server.text(&["HGET", X, &token.to_string()]).unwrap();
    let parts: Vec<&str> = entry.splitn(9, ' ').collect();
    assert_eq!(parts[..4], [&*fence.to_string(), &*fence.to_string(), "1", "1"], "{entry}");
    assert_eq!(
        parts[5..],
        [&*asked.owner.to_string(), &*asked.instance.to_string(), "node-1", "nightly report"],
        "{entry}"
    );
    let queue = format!("{X}:queue");
    let first: Vec<String> = redis::from_redis_value(server.command(&["ZRANGE", &queue, "0", "0"])).unwrap();
    assert_eq!(first, [format!("{}{token}", asked.owner)]);
    left(&store, &hold).await;
    store.evict(&lock("x"), waiting.token, &audit("unlock")).await.unwrap();
    let mut all: Vec<String> = redis::from_redis_value(server.command(&["KEYS", "*"])).unwrap();
    all.sort();
    // Nobody is left in the queue.
    let wanted = ["cronward:default:{default:locks}", X, &format!("{X}:audit"), &format!("{X}:spent")];
    assert_eq!(all, wanted);
    assert!(all.iter().all(|key| server.number(&["PTTL", key]) > 0), "{all:?}");
}

#[tokio::test]
async fn keys_outlive_the_longest_entry_whoever_writes_later_and_go_after_the_retention() {
    let server = RedisServer::start();
    let brief = StoreOptions::default().with_retention(Duration::from_millis(1));
    let store = RedisStore::open(&server.url(), brief).await.unwrap();
    let long = request(1, &[read("x")]);
    let long = held(&store, &long).await;
    let short = AcquireRequest { ttl: Duration::from_millis(500), ..request(2, &[read("x"), read("y")]) };
    let short = held(&store, &short).await;
    for key in [X, &format!("{X}:queue"), "cronward:default:{default:locks}"] {
        assert!((50_000..=60_001).contains(&server.number(&["PTTL", key])), "{key}");
    }
    left(&store, &short).await;
    assert!(server.number(&["PTTL", X]) > 50_000);
    assert!(server.number(&["PTTL", "cronward:default:{default:locks}:y"]) <= 501);
    // Whoever comes later finds the names of those that are gone no more.
    crate::redis::eventually("y is not listed any more", async || store.locks(&[]).await.unwrap().1.len() == 1).await;
    held(&store, &request(3, &[read("x")])).await;
    assert_eq!(server.number(&["ZCARD", "cronward:default:{default:locks}"]), 1);
    assert_eq!(store.renew_lock(&long).await.unwrap(), LockRenewal::Renewed);
}

#[tokio::test]
async fn one_key_that_is_lost_is_a_lapse_and_no_error() {
    for lost in ["", ":queue"] {
        let server = RedisServer::start();
        let store = store(&server).await;
        let hold = held(&store, &request(1, &[write("x")])).await;
        let waiting = request(2, &[write("x")]);
        waits(&store, &waiting).await;
        server.command(&["DEL", &format!("{X}{lost}")]);
        assert_eq!(store.locks(&[lock("x")]).await.unwrap().1[0].entries, [], "{lost:?}");
        assert_eq!(store.renew_lock(&hold).await.unwrap(), LockRenewal::Restored, "{lost:?}");
        assert_eq!(store.renew_lock(&hold).await.unwrap(), LockRenewal::Renewed, "{lost:?}");
        // Nothing of what stood in the other key alone is left.
        assert_eq!((server.number(&["HLEN", X]), server.number(&["ZCARD", &format!("{X}:queue")])), (3, 1), "{lost:?}");
        assert_eq!(waits(&store, &waiting).await.0, 1);

        server.command(&["DEL", &format!("{X}{lost}")]);
        let newcomer = held(&store, &request(3, &[write("x")])).await;
        assert!(matches!(store.renew_lock(&hold).await.unwrap(), LockRenewal::Lost { to: Some(_) }), "{lost:?}");
        assert!(matches!(left(&store, &hold).await, LockRelease::Overtaken { by: Some(_) }), "{lost:?}");
        assert!(newcomer.fence > hold.fence || lost.is_empty(), "{lost:?}");
        left(&store, &newcomer).await;
    }
}

#[tokio::test]
async fn tokens_that_were_left_are_forgotten_when_their_time_is_over_and_never_too_many() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let spent = format!("{X}:spent");
    let hold = held(&store, &request(1, &[write("x")])).await;
    left(&store, &hold).await;
    assert_eq!(store.acquire(&request(1, &[write("x")])).await.unwrap(), Acquired::Refused(LockRefusal::Spent));
    // Its time is over.
    server.command(&["ZADD", &spent, "3", &format!("{:032x}", 1)]);
    let fill = "for i = 1, 5000 do redis.call('ZADD', KEYS[1], ARGV[1] + i, string.format('%032x', 100000 + i)) end";
    // Left while a copy may be under way.
    let until = ((1_i64 << 52) + crate::redis::now().timestamp_millis() * 2 + 10_000_000).to_string();
    server.command(&["EVAL", fill, "1", &spent, &until]);
    let hold = held(&store, &request(2, &[write("x")])).await;
    left(&store, &hold).await;
    assert_eq!(server.number(&["ZCARD", &spent]), 4_096);
    held(&store, &request(1, &[write("x")])).await;
}

#[tokio::test]
async fn a_token_that_may_come_again_outlasts_any_number_of_those_that_cannot() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let unsure = held(&store, &request(1, &[write("x")])).await;
    assert_eq!(store.release(&unsure.exit(true)).await.unwrap(), LockRelease::Released);
    for number in 2..=40 {
        let hold = held(&store, &request(number, &[write("x")])).await;
        left(&store, &hold).await;
    }
    assert_eq!(server.number(&["ZCARD", &format!("{X}:spent")]), 17);
    assert_eq!(store.acquire(&request(1, &[write("x")])).await.unwrap(), Acquired::Refused(LockRefusal::Spent));
    // A release whose answer was lost comes again.
    assert_eq!(store.release(&request(40, &[write("x")]).exit(false)).await.unwrap(), LockRelease::Released);
}

#[tokio::test]
async fn what_was_flushed_is_set_again_by_those_who_hold() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let mut readers = Vec::new();
    for number in 1..=4 {
        readers.push(held(&store, &request(number, &[read("x")])).await);
    }
    server.command(&["FLUSHALL"]);
    for reader in &readers {
        assert_eq!(store.renew_lock(reader).await.unwrap(), LockRenewal::Restored);
    }
    waits(&store, &request(5, &[write("x")])).await;
    let (_, locks) = store.locks(&[]).await.unwrap();
    assert_eq!((locks.len(), locks[0].holders().count(), locks[0].waiting().count()), (1, 4, 1));
    for reader in &readers {
        assert_eq!(store.renew_lock(reader).await.unwrap(), LockRenewal::Renewed);
    }
    // Somebody new was first.
    server.command(&["FLUSHALL"]);
    held(&store, &request(6, &[write("x")])).await;
    for reader in &readers {
        assert!(matches!(store.renew_lock(reader).await.unwrap(), LockRenewal::Lost { to: Some(_) }));
    }
}

#[tokio::test]
async fn dead_entries_behind_the_front_count_until_they_reach_it_and_never_keep_anybody_out() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let hold = held(&store, &request(1, &[write("x")])).await;
    for number in 2..=1_024 {
        waits(&store, &request(number, &[write("x")])).await;
    }
    let newcomer = request(2_000, &[write("x")]);
    assert_eq!(store.acquire(&newcomer).await.unwrap(), Acquired::Refused(LockRefusal::Full));
    // All but the first and the last have lapsed.
    for number in 2..1_024_u128 {
        let field = format!("{number:032x}");
        let entry = server.text(&["HGET", X, &field]).unwrap();
        let mut parts: Vec<&str> = entry.split(' ').collect();
        parts[4] = "1";
        server.command(&["HSET", X, &field, &parts.join(" ")]);
    }
    let last = request(1_024, &[write("x")]);
    let (ahead, by) = waits(&store, &last).await;
    assert!((1..=1_023).contains(&ahead), "{ahead}");
    assert_eq!(by.node.as_str(), "node-1");
    // A queue that is full of them is not full, once the second is over in which its length alone decides.
    server.command(&["ZREM", &format!("{X}:spent"), "full"]);
    assert_eq!(waits(&store, &newcomer).await.0, 2);
    assert_eq!(waits(&store, &last).await.0, 1);
    assert_eq!(server.number(&["ZCARD", &format!("{X}:queue")]), 3);
    left(&store, &hold).await;
    held(&store, &last).await;
}

#[tokio::test]
async fn what_somebody_else_wrote_is_told_with_its_key_and_left() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let hold = held(&store, &request(1, &[write("x")])).await;
    let token = hold.token.to_string();
    let good = server.text(&["HGET", X, &token]).unwrap();
    let long = "9".repeat(30);
    let of_no_node = [good.replace("node-1", "-node"), good.replace("node-1", "node-")];
    let too_large = format!("{long}{good}");
    for foreigner in ["", "hello", "1 2 3 4 5 x y z", &of_no_node[0], &of_no_node[1], &too_large] {
        server.command(&["HSET", X, &token, foreigner]);
        let before = server.command(&["DUMP", X]);
        let asked = [
            (Op::Acquire, store.acquire(&request(1, &[write("x")])).await.map(drop)),
            (Op::Acquire, store.acquire(&request(2, &[write("x")])).await.map(drop)),
            (Op::RenewLock, store.renew_lock(&hold).await.map(drop)),
            (Op::Release, store.release(&hold.exit(false)).await.map(drop)),
            (Op::Evict, store.evict(&lock("x"), hold.token, &audit("unlock")).await.map(drop)),
            (Op::Locks, store.locks(&[lock("x")]).await.map(drop)),
        ];
        for (op, answer) in asked {
            let Err(error) = answer else { panic!("{op:?} of {foreigner:?}") };
            assert_eq!((error.kind, error.op, error.applied), (ErrorKind::Corrupt, op, Applied::No), "{error}");
            assert!(error.message.contains(X), "{error}");
        }
        assert_eq!(server.command(&["DUMP", X]), before, "{foreigner:?}");
    }
    server.command(&["HSET", X, &token, &good]);
    assert_eq!(store.renew_lock(&hold).await.unwrap(), LockRenewal::Renewed);
    for end in ["", ":queue", ":spent"] {
        let key = format!("{X}{end}");
        server.command(&["DEL", &key]);
        server.command(&["SET", &key, "somebody's"]);
        let error = store.acquire(&request(3, &[write("x")])).await.unwrap_err();
        assert_eq!((error.kind, error.applied), (ErrorKind::Corrupt, Applied::No), "{error}");
        assert_eq!(server.text(&["GET", &key]).as_deref(), Some("somebody's"));
        server.command(&["DEL", &key]);
    }
    // The names of all locks: nothing was written before it is met.
    server.command(&["SET", NAMES, "somebody's"]);
    let error = store.acquire(&request(3, &[write("y")])).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Corrupt, Applied::No), "{error}");
    assert_eq!(server.number(&["EXISTS", "cronward:default:{default:locks}:y"]), 0);
    server.command(&["DEL", NAMES]);
    // Who renews or takes out what nobody has used has not used it.
    let unknown = request(9, &[write("z")]).granted(hold.fence, vec![1]);
    assert!(matches!(store.renew_lock(&unknown).await.unwrap(), LockRenewal::Restored | LockRenewal::Lost { .. }));
    assert_eq!(store.evict(&lock("w"), hold.token, &audit("unlock")).await.unwrap(), Intervention::Unchanged);
    let (_, all) = store.locks(&[]).await.unwrap();
    assert!(all.iter().all(|record| record.lock != lock("w")), "{all:?}");
}

#[tokio::test]
async fn a_full_memory_refuses_who_is_new_and_nobody_else() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let hold = held(&store, &request(1, &[write("x"), write("y")])).await;
    let waiting = request(2, &[write("x")]);
    waits(&store, &waiting).await;
    server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let before = server.command(&["DUMP", X]);
    let error = store.acquire(&request(3, &[write("x"), write("y")])).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Overloaded, Applied::No), "{error}");
    assert_eq!(server.command(&["DUMP", X]), before);
    assert_eq!(store.renew_lock(&hold).await.unwrap(), LockRenewal::Renewed);
    waits(&store, &waiting).await;
    assert_eq!(left(&store, &hold).await, LockRelease::Released);
    let next = held(&store, &waiting).await;
    server.command(&["FLUSHALL"]);
    assert_eq!(store.renew_lock(&next).await.unwrap(), LockRenewal::Restored);
    let evicted = store.evict(&lock("x"), next.token, &audit("unlock")).await.unwrap();
    assert_eq!(evicted, Intervention::Applied);
}

#[tokio::test]
async fn an_operators_verbs_are_kept_up_to_sixteen() {
    let server = RedisServer::start();
    let store = store(&server).await;
    for number in 1..=20 {
        held(&store, &request(number, &[write("x")])).await;
        let said = cronward::slot::Audit { why: format!("the {number}th\nline"), ..audit("unlock") };
        let token = request(number, &[write("x")]).token;
        assert_eq!(store.evict(&lock("x"), token, &said).await.unwrap(), Intervention::Applied);
    }
    let (_, locks) = store.locks(&[lock("x")]).await.unwrap();
    let kept: Vec<_> = locks[0].audit.iter().map(|audit| audit.why.clone()).collect();
    assert_eq!(kept, (5..=20).map(|number| format!("the {number}th\nline")).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_server_that_forgets_its_scripts_fails_nothing() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let mut hints = store.listen(crate::lock_words::instance(2));
    for _ in 0..3 {
        server.command(&["SCRIPT", "FLUSH"]);
        let hold = held(&store, &request(1, &[write("x")])).await;
        let waiting = request(2, &[write("x")]);
        waits(&store, &waiting).await;
        server.command(&["SCRIPT", "FLUSH"]);
        left(&store, &hold).await;
        assert_eq!(next_ready(&mut hints).await, waiting.token);
        server.command(&["FLUSHALL"]);
    }
}

#[tokio::test]
async fn what_stands_behind_what_was_read_is_decided_alike() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let own = |number, demand: Demand| AcquireRequest { owner: OwnerId::of_text("o"), ..request(number, &[demand]) };
    let reader = held(&store, &own(1, read("x"))).await;
    let beside = held(&store, &request(2, &[read("x")])).await;
    for number in 10..=40 {
        waits(&store, &request(number, &[write("x")])).await;
    }
    // Its owner's place is in front; the others who hold go on holding, or it is refused.
    let again = held(&store, &own(3, read("x"))).await;
    assert_eq!(again.places, reader.places);
    let upgrade = own(4, write("x"));
    assert_eq!(store.acquire(&upgrade).await.unwrap(), Acquired::Refused(LockRefusal::WaitsForItself));
    left(&store, &beside).await;
    let upgraded = held(&store, &upgrade).await;
    assert!(upgraded.fence > again.fence);
    assert_eq!(waits(&store, &request(40, &[write("x")])).await.0, 33);
    // The last one leaves, and one in the middle: nobody else moves.
    for number in [25, 40] {
        assert_eq!(store.release(&request(number, &[write("x")]).exit(false)).await.unwrap(), LockRelease::Released);
    }
    // Lost alone, what is held is set again in front of all who wait.
    server.command(&["HDEL", X, &upgraded.token.to_string()]);
    assert_eq!(store.renew_lock(&upgraded).await.unwrap(), LockRenewal::Restored);
    let (_, locks) = store.locks(&[lock("x")]).await.unwrap();
    let order: Vec<u128> = locks[0].entries.iter().map(|entry| entry.token.bits()).collect();
    assert_eq!(order, [1, 3, 4].into_iter().chain((10..40).filter(|number| *number != 25)).collect::<Vec<_>>());
    assert_eq!(locks[0].holders().count(), 3);
    for hold in [&reader, &again, &upgraded] {
        assert_eq!(left(&store, hold).await, LockRelease::Released);
    }
    held(&store, &request(10, &[write("x")])).await;
}
