//! Ten thousand jobs due at the same instant on one node with a real server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cronward::clock::between;
use cronward::store::Store;

use crate::redis_server::RedisServer;
use crate::rig::Rig;
use crate::spy::{Claims, Spy};
use crate::table::{Table, span};
use crate::{block_on, work};

const JOBS: usize = 10_000;
const WATCHED: Duration = Duration::from_secs(30);

pub(crate) fn measure(table: &mut Table) {
    let redis = RedisServer::start();
    block_on(burst(&redis, table));
}

async fn burst(redis: &RedisServer, table: &mut Table) {
    let spy = Spy::on(work::open(&redis.url()).await, Claims::AskedThenDone);
    let jobs =
        (0..JOBS).map(|number| work::ticking(number, "*/5 * * * * *", work::reaching_back(Duration::from_secs(4))));
    let rig = Rig::start("bench-node", Arc::clone(&spy) as Arc<dyn Store>, jobs.collect()).await;
    // What is current at the start is claimed at once, and in the way of the first tick.
    rig.work(Duration::from_secs(5)).await;
    let begun = work::wall();
    rig.work(WATCHED).await;
    let ended = work::wall();
    rig.stop().await;
    let mut ticks: BTreeMap<_, (Duration, Duration, usize)> = BTreeMap::new();
    for noted in spy.take() {
        let tick = noted.slot.start();
        if tick > begun && noted.slot.end() < ended {
            let (sent, answered, claims) = ticks.entry(tick).or_default();
            *sent = noted.lateness().max(*sent);
            *answered = between(tick, noted.answered).max(*answered);
            *claims += 1;
        }
    }
    let complete = ticks.values().all(|(_, _, claims)| *claims == JOBS);
    table.is_so(
        "claims of 10,000 jobs due at once",
        "each is made, once",
        format!("{:?}", ticks.values().map(|(_, _, claims)| *claims).collect::<Vec<_>>()),
        complete && !ticks.is_empty(),
    );
    let slowest = |of: fn(&(Duration, Duration, usize)) -> Duration| ticks.values().map(of).max().unwrap_or_default();
    let more = format!("answered by Redis by {}; worst of {} ticks", span(slowest(|tick| tick.1)), ticks.len());
    table.within(
        "10,000 claims due at once have left, from the tick",
        Duration::from_secs(1),
        slowest(|tick| tick.0),
        &more,
    );
}
