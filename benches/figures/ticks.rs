//! From the tick to the sending of the claim, in the real node's loop.

use std::sync::Arc;
use std::time::Duration;

use cronward::clock::SystemClock;
use cronward::job::{JobSpec, Policy};
use cronward::store::memory::MemoryStore;
use cronward::store::{Store, StoreOptions};

use crate::rig::Rig;
use crate::sample::Sample;
use crate::spy::{Claims, Spy};
use crate::table::Table;
use crate::{block_on, work};

const MANY: usize = 1_000;

pub(crate) fn measure(table: &mut Table) {
    let one = vec![work::ticking(0, "* * * * * *", Policy::default())];
    let sample = block_on(lateness(one, Claims::Asked, Duration::from_secs(101)));
    table.within("tick → claim sent, 1 job, p99", Duration::from_millis(5), sample.p99(), &sample.words());

    let sample = block_on(lateness(many(), Claims::Done, Duration::from_secs(25)));
    let bound = Duration::from_millis(25);
    table.within("tick → claim sent, 1,000 jobs in one second, p99", bound, sample.p99(), &sample.words());
}

fn many() -> Vec<JobSpec> {
    (0..MANY).map(|number| work::ticking(number, "*/5 * * * * *", Policy::default())).collect()
}

/// How late the claims of these jobs are sent. What is current at the start is claimed late on purpose and left out.
async fn lateness(jobs: Vec<JobSpec>, claims: Claims, span: Duration) -> Sample {
    let memory = MemoryStore::new(StoreOptions::default(), Arc::new(SystemClock));
    let spy = Spy::on(Arc::new(memory), claims);
    let rig = Rig::start("bench-node", Arc::clone(&spy) as Arc<dyn Store>, jobs).await;
    let begun = work::wall();
    rig.work(span).await;
    rig.stop().await;
    Sample::of(spy.take().iter().filter(|noted| noted.slot.start() > begun).map(|noted| noted.lateness()))
}
