//! What the metrics cost: memory, counted by the allocator of this test; calls of the store.

use std::fmt::{self, Write};
use std::sync::Arc;

use cronward::clock::Clock;
use cronward::job::{JobSelection, JobSpec};
use cronward::observe::Observer;
use cronward::store::memory::MemoryStore;
use cronward::store::{Store, StoreOptions};

use crate::bench::{self, Bench, everything};

/// What the registry and a scrape may take of a thousand jobs.
const MOST: u64 = 512 * 1_024;

/// Takes a text and keeps nothing of it.
#[derive(Default)]
struct Nowhere {
    bytes: usize,
}

impl Write for Nowhere {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes += text.len();
        Ok(())
    }
}

#[test]
fn a_thousand_jobs_that_all_ran_take_half_a_mebibyte_also_while_they_are_told() {
    let jobs: Vec<Arc<JobSpec>> =
        (0..1_000).map(|number| Arc::new(bench::job(&format!("hourly-job-{number}")))).collect();
    let mut nowhere = Nowhere::default();
    let mut kept = None;
    let taken = allocation_counter::measure(|| {
        let bench = Bench::telling_of(JobSelection::All);
        bench.metrics.plan(&jobs, "c0ffee");
        jobs.iter().for_each(|job| everything(&bench, job.name.as_str()));
        bench.metrics.write(bench.clock.now(), &mut nowhere).unwrap();
        kept = Some(bench);
    });
    assert!(nowhere.bytes > 2_000_000, "only {} bytes of text", nowhere.bytes);
    assert!(taken.bytes_max < MOST, "{taken:?}");
    let scrape =
        allocation_counter::measure(|| kept.as_ref().unwrap().metrics.write(bench::now(), &mut nowhere).unwrap());
    assert!(scrape.bytes_max < 64 * 1_024, "a scrape keeps nothing: {scrape:?}");
}

#[test]
fn a_reader_that_leaves_ends_the_text() {
    struct Gone;
    impl Write for Gone {
        fn write_str(&mut self, _text: &str) -> fmt::Result {
            Err(fmt::Error)
        }
    }
    let bench = Bench::of(&["a"]);
    assert!(bench.metrics.write(bench.clock.now(), &mut Gone).is_err());
}

/// Allocations of a hundred calls.
fn allocations(store: &Arc<dyn Store>) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let taken = allocation_counter::measure(|| {
        runtime.block_on(async {
            for _ in 0..100 {
                store.jobs().await.unwrap();
            }
        });
    });
    taken.count_total
}

#[test]
fn a_timed_call_is_one_call_and_takes_three_small_allocations_more() {
    let bench = Bench::of(&[]);
    let bare: Arc<dyn Store> = Arc::new(MemoryStore::new(StoreOptions::default(), Arc::new(bench.clock.clone())));
    let timed = bench.metrics.around(Arc::clone(&bare));
    let (before, _) = (allocations(&bare), allocations(&timed));
    let more = allocations(&timed) - before;
    assert!(more <= 300, "{more} allocations more for a hundred calls");
    let count = bench.value(r#"cronward_store_op_duration_seconds_count{namespace="prod",op="jobs"}"#);
    assert_eq!(count.as_deref(), Some("200"));
}
