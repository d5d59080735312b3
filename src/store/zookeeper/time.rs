//! The servers' clock, measured. ZooKeeper has no call for it, but the leader stamps every change with its time: a small
//! node is written, and the answer tells when. From then on this node's steady clock counts, until the next measurement.
//!
//! What is told lags behind the leader's clock by at most the time that the measurement took, and never runs ahead: so no
//! lease is taken before its time. It must not be given an end before its time either: a holder trusts its lease for
//! the TTL, less a margin, from when it asked. So a measurement serves calls that had asked before it was begun, however long
//! it took, and later ones only if it was short against that margin.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::Mutex;

use crate::clock::{Clock, Mono, later};

/// A measurement is good for so long: steady clocks drift by less than a millisecond meanwhile.
const GOOD_FOR: Duration = Duration::from_secs(10);

/// The longest measurement that later calls may use: the smallest margin of a holder's trust.
const SHORT: Duration = Duration::from_millis(20);

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

/// The last measurement. Held by the one who measures; the others wait for the outcome.
#[derive(Debug, Default)]
pub(super) struct LeaderClock {
    measured: Mutex<Option<Measured>>,
}

impl LeaderClock {
    /// The leader's time, measured where the last measurement is too old or took too long, or `anew`. `measure` writes and
    /// answers the stamp, in milliseconds.
    pub(super) async fn now<E>(
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
