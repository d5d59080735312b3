//! How long a writer waits among readers that read again at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Effort, TTL, client};
use crate::redis_server::RedisServer;
use crate::sample::Sample;
use crate::table::{Table, span};
use crate::work;

const READERS: usize = 32;
const READ: Duration = Duration::from_millis(10);
const WRITES: usize = 50;
const PAUSE: Duration = Duration::from_millis(100);

pub(super) async fn measure(redis: &RedisServer, effort: Effort, table: &mut Table) {
    let over = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    for number in 0..READERS {
        let (locks, over) = (client(redis, &format!("reader-{number}"), TTL).await, Arc::clone(&over));
        tasks.push(tokio::spawn(async move {
            let (lock, mut reads) = (locks.rw_lock("table").unwrap(), 0_usize);
            while !over.load(Ordering::Relaxed) {
                let held = lock.read().await.unwrap();
                tokio::time::sleep(READ).await;
                held.release().await.unwrap();
                reads += 1;
            }
            reads
        }));
    }
    let lock = client(redis, "writer", TTL).await.rw_lock("table").unwrap();
    let (begun, mut waits) = (super::mono(), Vec::new());
    for _ in 0..effort.times(WRITES) {
        tokio::time::sleep(PAUSE).await;
        let (wait, held) = work::timed(lock.write()).await;
        waits.push(wait);
        held.unwrap().release().await.unwrap();
    }
    let took = super::mono().since(begun);
    over.store(true, Ordering::Relaxed);
    let mut reads = 0;
    for task in tasks {
        reads += task.await.unwrap();
    }
    let sample = Sample::of(waits);
    let rate = reads as f64 / took.as_secs_f64();
    let words = format!("{}; p99 {}; {rate:.0} reads in a second", sample.words(), span(sample.p99()));
    table.told("wait of a writer among 32 readers that hold for 10 ms", words);
}
