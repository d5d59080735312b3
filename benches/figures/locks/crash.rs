//! From the death of a holder to the next one's `Held`, against the TTL.

use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Effort, client, mono, until_queued};
use crate::block_on;
use crate::redis_server::RedisServer;
use crate::rig::program;
use crate::sample::Sample;
use crate::table::Table;

const TTL: Duration = Duration::from_secs(2);
const BOUND: Duration = Duration::from_millis(2_500);
const KILLS: usize = 5;
const WAITERS: usize = 500;

pub(super) fn measure(redis: &RedisServer, effort: Effort, table: &mut Table) {
    let kills = (0..effort.times(KILLS)).map(|number| block_on(killed(redis, number)));
    let sample = Sample::of(kills);
    table.within("a holder is killed → next `Held`, TTL 2 s, longest", BOUND, sample.percentile(100), &sample.words());
    let sample = Sample::of((0..effort.times(1)).map(|number| die_together(redis, number)));
    table.within(
        "a holder and 500 waiters die at once → next `Held`, TTL 2 s",
        BOUND,
        sample.percentile(100),
        &sample.words(),
    );
}

/// `cronward lock` is killed in another part of its beat each time.
async fn killed(redis: &RedisServer, number: usize) -> Duration {
    let name = format!("killed-{number}");
    let mut command = Command::new(program());
    command.args(["lock", &name, "--ttl", "2s", "--store", &redis.url(), "--", "sleep", "60"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let locks = client(redis, "next", TTL).await;
    until_queued(&locks, &name, 1).await;
    let mutex = locks.mutex(&name).unwrap();
    let next = tokio::spawn(async move {
        let held = mutex.lock().await.unwrap();
        let now = mono();
        held.release().await.unwrap();
        now
    });
    until_queued(&locks, &name, 2).await;
    tokio::time::sleep(Duration::from_millis(1_000 + 150 * (number as u64 % 5))).await;
    let killed = mono();
    child.kill().unwrap();
    child.wait().unwrap();
    next.await.unwrap().since(killed)
}

/// They share a runtime, which ends with all they were about to do.
fn die_together(redis: &RedisServer, number: usize) -> Duration {
    let name = format!("together-{number}");
    let doomed = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    doomed.block_on(async {
        let locks = client(redis, "doomed", TTL).await;
        let mutex = locks.mutex(&name).unwrap();
        // Never dropped: it would be released.
        std::mem::forget(mutex.lock().await.unwrap());
        for _ in 0..WAITERS {
            let mutex = mutex.clone();
            tokio::spawn(async move { std::mem::forget(mutex.lock().await) });
        }
        until_queued(&locks, &name, 1 + WAITERS).await;
    });
    block_on(async {
        let locks = client(redis, "next", TTL).await;
        let mutex = locks.mutex(&name).unwrap();
        let next = tokio::spawn(async move {
            let held = mutex.lock().await.unwrap();
            let now = mono();
            held.release().await.unwrap();
            now
        });
        until_queued(&locks, &name, 2 + WAITERS).await;
        let died = mono();
        doomed.shutdown_background();
        next.await.unwrap().since(died)
    })
}
