//! Slots and locks in ZooKeeper, version 3.6 or later: one node per slot and per lock, guarded by its version.
//!
//! - **Atomic steps.** Each operation reads the slot's node, lets a rule decide on its state, and writes it back under the
//!   condition that its version is the one that was read, together with what else it concerns (`multi`). Otherwise it
//!   begins anew: nothing was done yet. So of many claimers one wins (I1, I5).
//! - **Time** is the leader's: it stamps each change, and a small one is made to learn its clock (`LeaderClock`). No node's wall
//!   clock decides anything.
//! - **A lease** is a mark with its end, as in a database: a session that its servers give up after ten seconds must not end a
//!   lease that its holder may trust for a minute, and a session goes on while the one who should renew hangs. The token says
//!   whose lease it is, whatever the session.
//! - **Alone.** What is leased of a job stands in one place, a node for each slot (`leases`). A grant of a slot that has to run alone
//!   changes the node above them, under the condition of its version.
//! - **A session** is watched all the same: beside each lease stands an ephemeral node, its owner, which goes with the session
//!   that wrote the lease last. A renewal that finds it gone, or another's, knows that the session was lost: the lease was in
//!   doubt. The mark decides what became of it; if it still stands it is renewed, the node is made anew in the same step, and
//!   `Resync` tells the other holders to renew at once.
//! - **Hints** are nodes that are made and removed in the same step as the change; a persistent watch tells of them.
//! - **Bounded.** A call ends within `op_timeout`.
//! - **Applied.** Only the step that writes can be `Maybe`; it is never sent twice.
//! - **Nodes are not believed.** What cannot be read ends in [`ErrorKind::Corrupt`](crate::store::ErrorKind).

mod backend;
mod batch;
mod fault;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod leases;
mod link;
mod locks;
mod messages;
mod nodes;
mod registry;
mod slots;

pub(super) use backend::ZookeeperBackend;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::try_join;
use tokio::sync::Mutex;
use zookeeper_client::{Error, MultiReadResult};

use crate::clock::{Clock, Mono, later};
use crate::store::keyed::{Call, Frame, Framed};
use crate::store::state::Moment;
use crate::store::{Capability, OpenError, Reach, StoreClock, StoreError, StoreOptions, redact};
use fault::{Fault, odd_answer};
use link::{Listener, Session, SessionLink, SessionTarget};
use nodes::{Found, NodeRequest, Paths};

/// How often somebody who waits looks again while there is no session.
const POLL: Duration = Duration::from_secs(5);

/// What it can do.
const CAPABILITY: Capability = Capability {
    name: "zookeeper",
    reach: Reach::Network,
    clock: StoreClock::Server,
    push: true,
    poll: POLL,
    durable: true,
    expires_records: false,
    locks: true,
    tells_changes: false,
    output_bytes: 700 * 1_024,
    messages: true,
};

/// A store in one ZooKeeper ensemble.
#[derive(Debug)]
pub struct ZookeeperStore {
    paths: Paths,
    link: Arc<SessionLink>,
    listener: Listener,
    location: String,
    options: StoreOptions,
    /// The last session that is known to have come after one that held leases.
    doubted: AtomicU64,
    clock: Arc<dyn Clock>,
    leader: LeaderClock,
    /// Where the next purge of locks begins, in the order of their names.
    purged_locks: AtomicUsize,
    /// The same of topics.
    purged_topics: AtomicUsize,
}

impl ZookeeperStore {
    /// Opens the store at `zookeeper://` (docs/stores.md has the forms). Only the url is judged here: no session is begun
    /// before the first operation, so an ensemble that is down is that one's error.
    ///
    /// # Errors
    /// [`OpenError::Url`] when the url cannot be used.
    #[allow(clippy::unused_async, reason = "every store is opened by awaiting; others do connect")]
    pub async fn open(url: &str, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let target = SessionTarget::parse(url)?;
        let paths = Paths::new(&target.chroot, &options.namespace);
        let link = Arc::new(SessionLink::new(target.clone(), paths.clone()));
        // A session of its own: a busy one would hold hints up.
        let listener = Listener::new(SessionLink::new(target, paths.clone()), paths.clone());
        let leader = LeaderClock::default();
        let (location, doubted) = (redact(url), AtomicU64::default());
        let (purged_locks, purged_topics) = Default::default();
        Ok(Self { paths, link, listener, location, options, doubted, clock, leader, purged_locks, purged_topics })
    }

    /// Now, by the leader's clock.
    async fn moment(&self, session: &Session, anew: bool) -> Result<Moment, Fault> {
        let measure = async || match self.stamp(session).await {
            Err(Error::NoNode) => {
                self.link.prepare(&session.client).await?;
                Ok(self.stamp(session).await?)
            }
            stamp => Ok::<_, Fault>(stamp?),
        };
        let now = self.leader.now(&*self.clock, (session.generation, anew), measure).await?;
        Ok(Moment { now, retention: self.options.retention })
    }

    async fn stamp(&self, session: &Session) -> Result<i64, Error> {
        session.client.set_data(&self.paths.clock(), b"", None).await.map(|stat| stat.mtime)
    }

    /// Runs a call's work within the limit and gives its error the words of the contract.
    async fn within<T>(&self, call: &Call, work: impl Future<Output = Result<T, Fault>>) -> Result<T, StoreError> {
        call.within(self.frame(), work).await
    }

    /// Reads several nodes as they are at one moment, and not before this call.
    async fn read(&self, session: &Session, asks: Vec<NodeRequest>) -> Result<Vec<Found>, Fault> {
        // Asked before the reading, on the same connection: a server that lags behind the leader catches up first.
        let caught_up = session.client.sync(&self.paths.pauses());
        let mut reader = session.client.new_multi_reader();
        for ask in asks {
            match ask {
                NodeRequest::Data(path) => reader.add_get_data(&path)?,
                NodeRequest::Children(path) => reader.add_get_children(&path)?,
            }
        }
        let ((), results) = try_join(caught_up, reader.commit()).await?;
        let found = results.into_iter().map(|result| match result {
            MultiReadResult::Data { data, stat } => Ok(Found::Data(data, stat)),
            MultiReadResult::Children { children } => Ok(Found::Children(children)),
            MultiReadResult::Error { err: Error::NoNode } => Ok(Found::Nothing),
            MultiReadResult::Error { err } => Err(err.into()),
            _ => Err(odd_answer()),
        });
        found.collect()
    }
}

impl Framed for ZookeeperStore {
    fn frame(&self) -> Frame<'_> {
        Frame { location: &self.location, limit: self.options.op_timeout }
    }
}

/// A measurement is good for so long: steady clocks drift by less than a millisecond meanwhile.
const GOOD_FOR: Duration = Duration::from_secs(10);

/// The longest measurement that later calls may use: the smallest margin of a holder's trust.
const SHORT: Duration = Duration::from_millis(20);

/// A measurement of the leader's clock.
#[derive(Clone, Copy, Debug)]
struct Measured {
    begun: Mono,
    /// When the answer came.
    at: Mono,
    /// What the leader's clock was before that.
    leader: DateTime<Utc>,
    /// With which session.
    generation: u64,
}

/// The servers' clock, measured. ZooKeeper has no call for it, but the leader stamps every change with its time: a small
/// node is written, and the answer tells when. From then on this node's steady clock counts, until the next measurement.
///
/// What is told lags behind the leader's clock by at most the time that the measurement took, and never runs ahead: so no
/// lease is taken before its time. It must not be given an end before its time either: a holder trusts its lease for
/// the TTL, less a margin, from when it asked. So a measurement serves calls that had asked before it was begun, however long
/// it took, and later ones only if it was short against that margin.
///
/// Kept is the last measurement, held by the one who measures; the others wait for the outcome.
#[derive(Debug, Default)]
struct LeaderClock {
    measured: Mutex<Option<Measured>>,
}

impl LeaderClock {
    /// The leader's time, measured where the last measurement is too old or took too long, or `anew`. `measure` writes and
    /// answers the stamp, in milliseconds.
    async fn now<E>(
        &self,
        clock: &dyn Clock,
        (generation, anew): (u64, bool),
        measure: impl AsyncFnOnce() -> Result<i64, E>,
    ) -> Result<DateTime<Utc>, E> {
        let asked = clock.now().mono;
        let mut measured = self.measured.lock().await;
        let begun = clock.now().mono;
        let young = |last: &Measured| !anew && begun.since(last.at) < GOOD_FOR && last.at.since(last.begun) <= SHORT;
        let good = |last: &Measured| last.generation == generation && (last.begun > asked || young(last));
        if let Some(last) = measured.filter(good) {
            return Ok(last.at(begun));
        }
        let stamp = measure().await?;
        let at = clock.now().mono;
        let leader = DateTime::UNIX_EPOCH.checked_add_signed(TimeDelta::milliseconds(stamp)).unwrap_or_default();
        // Of two measurements the later one may lag more: time does not go back for that.
        let before = measured.filter(|last| last.generation == generation).map(|last| last.at(at));
        let step_back = before.filter(|before| *before > leader && (*before - leader) < TimeDelta::seconds(1));
        let leader = step_back.unwrap_or(leader);
        *measured = Some(Measured { begun, at, leader, generation });
        Ok(leader)
    }
}

impl Measured {
    fn at(self, now: Mono) -> DateTime<Utc> {
        use chrono::SubsecRound;
        later(self.leader, now.since(self.at)).trunc_subsecs(3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    fn at(millis: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(millis).unwrap()
    }

    async fn now(leader: &LeaderClock, clock: &ManualClock, anew: bool, stamp: i64) -> DateTime<Utc> {
        leader.now(clock, (1, anew), async || Ok::<_, ()>(stamp)).await.unwrap()
    }

    #[tokio::test]
    async fn between_measurements_the_steady_clock_counts_and_the_wall_clock_does_not() {
        let (leader, clock) = (LeaderClock::default(), ManualClock::at(at(0)));
        assert_eq!(now(&leader, &clock, false, 5_000).await, at(5_000));
        clock.advance(Duration::from_secs(3));
        assert_eq!(now(&leader, &clock, false, 99_000).await, at(8_000), "not asked again yet");
        clock.advance(Duration::from_secs(7));
        assert_eq!(now(&leader, &clock, false, 15_100).await, at(15_100), "asked again");
    }

    #[tokio::test]
    async fn time_does_not_go_back_for_a_slow_measurement_but_follows_a_clock_that_is_set() {
        let (leader, clock) = (LeaderClock::default(), ManualClock::at(at(0)));
        assert_eq!(now(&leader, &clock, false, 5_000).await, at(5_000));
        assert_eq!(now(&leader, &clock, true, 4_900).await, at(5_000));
        assert_eq!(now(&leader, &clock, true, 1_000).await, at(1_000));
    }

    #[tokio::test]
    async fn what_took_long_to_measure_serves_those_who_had_asked_before_and_nobody_later() {
        let (leader, clock) = (LeaderClock::default(), ManualClock::at(at(0)));
        let slow = async |stamp| {
            let measure = async || {
                clock.advance(Duration::from_millis(1));
                tokio::task::yield_now().await;
                clock.advance(SHORT);
                Ok::<_, ()>(stamp)
            };
            leader.now(&clock, (1, false), measure).await.unwrap()
        };
        // The others ask while the first measures: what that finds may lie before their question.
        let told = futures_util::future::join3(slow(5_000), slow(6_000), slow(7_000)).await;
        assert_eq!(told, (at(5_000), at(6_000), at(6_000)));
        assert_eq!(now(&leader, &clock, false, 8_000).await, at(8_000));
        clock.advance(Duration::from_secs(3));
        assert_eq!(now(&leader, &clock, false, 99_000).await, at(11_000), "that one was short");
    }
}
