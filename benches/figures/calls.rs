//! What a guarded run, and a node that loses, cost the store: counted by the server and by the nodes' own stores.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use cronward::job::{JobSpec, Policy};
use cronward::slot::Period;
use cronward::store::Store;

use crate::redis_server::RedisServer;
use crate::rig::Rig;
use crate::spy::{Claims, Spy};
use crate::table::Table;
use crate::{block_on, work};

const CYCLES: usize = 1_000;
const NODES: usize = 3;
/// A slot of the losers' job; it ticks each second.
const SLOT: Duration = Duration::from_secs(5);
const WATCHED: Duration = Duration::from_secs(25);
/// Heartbeats of a node in that time, one each 10 s.
const HEARTBEATS: usize = 3;

pub(crate) fn measure(table: &mut Table) {
    let redis = RedisServer::start();
    block_on(guarded_runs(&redis, table));
    block_on(losers(&redis, table));
}

async fn guarded_runs(redis: &RedisServer, table: &mut Table) {
    let store = work::open(&redis.url()).await;
    // The first calls connect, and teach the server the scripts.
    work::guard(&*store, CYCLES).await;
    let before = redis.calls("evalsha");
    let monitor = Monitor::start(redis.port());
    for number in 0..CYCLES {
        work::guard(&*store, number).await;
    }
    let sent = monitor.stop();
    let scripts = redis.calls("evalsha") - before;
    table.at_most("round trips of a guarded run", 2.0, sent as f64 / CYCLES as f64, "");
    table.at_most("script calls of a guarded run", 2.0, scripts as f64 / CYCLES as f64, "");
}

/// Counts what clients send, and not what scripts do: one command is one round trip, because nobody here pipelines.
pub(crate) struct Monitor {
    port: u16,
    counting: JoinHandle<usize>,
}

impl Monitor {
    const END: &str = "the-end-of-counting";

    pub(crate) fn start(port: u16) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(b"MONITOR\r\n").unwrap();
        let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
        assert_eq!(lines.next().unwrap(), "+OK");
        let counting = std::thread::spawn(move || {
            lines.take_while(|line| !line.contains(Self::END)).filter(|line| !line.contains(" lua] ")).count()
        });
        Self { port, counting }
    }

    pub(crate) fn stop(self) -> usize {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(stream, "ECHO {}\r\n", Self::END).unwrap();
        self.counting.join().unwrap()
    }
}

async fn losers(redis: &RedisServer, table: &mut Table) {
    let (mut rigs, mut spies) = (Vec::new(), Vec::new());
    for number in 0..NODES {
        let spy = Spy::on(work::open(&redis.url()).await, Claims::Asked);
        let job = JobSpec { period: Period::Fixed(SLOT), ..work::ticking(0, "* * * * * *", Policy::default()) };
        rigs.push(Rig::start(&format!("node-{number}"), Arc::clone(&spy) as Arc<dyn Store>, vec![job]).await);
        spies.push(spy);
    }
    // The first subscription tells each node to look again; that is once in its life.
    rigs[0].work(SLOT + Duration::from_secs(1)).await;
    let begun = work::wall();
    let before = others(&spies);
    rigs[0].work(WATCHED).await;
    let after = others(&spies);
    let mut slots: BTreeMap<_, Vec<(usize, bool)>> = BTreeMap::new();
    for spy in &spies {
        let mut claims: BTreeMap<_, (usize, bool)> = BTreeMap::new();
        for noted in spy.take().into_iter().filter(|noted| noted.slot.start() > begun) {
            let (calls, won) = claims.entry(noted.slot).or_default();
            *calls += 1;
            *won |= noted.answer == "claimed";
        }
        claims.into_iter().for_each(|(slot, node)| slots.entry(slot).or_default().push(node));
    }
    for rig in rigs {
        rig.stop().await;
    }
    // The last slot is not over.
    slots.pop_last();
    let of_losers: Vec<usize> = slots.values().flatten().filter(|(_, won)| !won).map(|(calls, _)| *calls).collect();
    let most = of_losers.iter().max().copied().unwrap_or_default();
    table.at_most("calls of a node that loses a slot of 5 ticks, at the most", 1.0, most as f64, "");
    let mut more = after;
    more.iter_mut().for_each(|(what, calls)| *calls -= before.get(what).copied().unwrap_or_default());
    more.retain(|_, calls| *calls > 0);
    let completes = more.remove("complete").unwrap_or_default();
    // What is noted for `cronward why` goes with the heartbeat, all slots in one call.
    let notes = more.remove("note").unwrap_or_default();
    let most_notes = NODES * HEARTBEATS;
    table.is_so(
        "other calls about slots that are known to be done",
        "none but the winners' `complete`, and notes with each heartbeat",
        format!(
            "{completes} completions of {} slots, {notes} notes, others {more:?}; {} losses",
            slots.len() + 1,
            of_losers.len()
        ),
        more.is_empty() && completes <= slots.len() + 1 && notes <= most_notes,
    );
}

/// What all nodes asked about slots besides claims.
fn others(spies: &[Arc<Spy>]) -> BTreeMap<&'static str, usize> {
    let mut all = BTreeMap::new();
    for (what, calls) in spies.iter().flat_map(|spy| spy.others()) {
        *all.entry(what).or_default() += calls;
    }
    all
}
