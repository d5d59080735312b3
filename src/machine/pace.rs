//! How long to wait: after a failed attempt, after a store error, and how waits are spread over nodes. Pure arithmetic.

use std::time::Duration;

/// After a release everybody looks; half of the 100 ms that the protocol allows from the end of a wait to a start.
pub(super) const SPREAD_RELEASE: Duration = Duration::from_millis(50);

/// What the failing node waits on top, so that another node gets the retry: a quarter of the delay, at least the time
/// that others need to notice (two polls of a store without wake-ups), at most five seconds.
pub(crate) fn own_handicap(delay: Duration, poll: Option<Duration>) -> Duration {
    let least = poll.map_or(Duration::from_millis(250), |poll| (poll * 2).max(Duration::from_millis(250)));
    (delay / 4).clamp(least, least.max(Duration::from_secs(5)))
}

/// How often a node whose own attempt failed looks whether an operator has ended the wait, where the store tells of nothing.
pub(super) const LOOK_BEHIND: Duration = Duration::from_secs(10);

/// The least wait after the `left`-th time in a row that an attempt was given back without a start: a second, doubled up to five minutes. Each time
/// takes one of the slot's 999 attempt numbers.
pub(crate) fn after_queue(left: u32) -> Duration {
    if left == 0 {
        return Duration::ZERO;
    }
    Duration::from_secs(1 << (left - 1).min(9)).min(Duration::from_secs(300))
}

/// The wait after a renewal that failed: sooner than the next regular one, for there may be time for several before the trust ends.
pub(super) fn renewal_error(ttl: Duration) -> Duration {
    (ttl / 10).clamp(Duration::from_millis(50), Duration::from_secs(1))
}

/// The wait after the `errors`-th store error in a row (1-based): 100 ms doubled up to 5 s, so that a store that comes
/// back is used within seconds and one that is down is not hammered.
pub(super) fn store_error(errors: u32) -> Duration {
    let doublings = errors.saturating_sub(1).min(6);
    Duration::from_millis(100 << doublings).min(Duration::from_secs(5))
}

/// A number in `[0, span)` from a seed and a counter, so that nodes do not all look at the same instant. SplitMix64
/// (Steele, Lea, Flood 2014): any well-mixed function would do; nothing secret rests on it.
pub(super) fn spread(span: Duration, seed: u128, count: u64) -> Duration {
    let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    if nanos == 0 {
        return Duration::ZERO;
    }
    Duration::from_nanos(mix(seed, count) % nanos)
}

/// 64 well-mixed bits from a seed and a counter.
pub(super) fn mix(seed: u128, count: u64) -> u64 {
    let [low, high] = [seed, seed >> 64].map(|part| u64::try_from(part & u128::from(u64::MAX)).unwrap_or(0));
    let mut z = (low ^ high.rotate_left(32)).wrapping_add(count.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failing_node_waits_longer_than_any_other_needs_to_notice() {
        let poll = Duration::from_millis(500);
        assert_eq!(own_handicap(Duration::ZERO, None), Duration::from_millis(250));
        assert_eq!(own_handicap(Duration::ZERO, Some(poll)), poll * 2);
        assert_eq!(own_handicap(Duration::from_secs(10), None), Duration::from_millis(2_500));
        assert_eq!(own_handicap(Duration::from_secs(600), None), Duration::from_secs(5));
    }

    #[test]
    fn who_waits_for_locks_in_vain_again_and_again_comes_back_ever_later() {
        assert_eq!([0, 1, 2, 9, 10, 5_000].map(|left| after_queue(left).as_secs()), [0, 1, 2, 256, 300, 300]);
    }

    #[test]
    fn store_errors_are_waited_out_from_100_ms_to_5_s() {
        assert_eq!([1, 2, 5, 9, 5_000].map(|n| store_error(n).as_millis()), [100, 200, 1_600, 5_000, 5_000]);
    }

    #[test]
    fn waits_are_spread_within_their_span() {
        let span = Duration::from_millis(50);
        let drawn: Vec<Duration> = (0..100).map(|count| spread(span, 7, count)).collect();
        assert!(drawn.iter().all(|wait| *wait < span));
        assert!(
            drawn.iter().max() > Some(&Duration::from_millis(40))
                && drawn.iter().min() < Some(&Duration::from_millis(10))
        );
        assert_eq!(spread(Duration::ZERO, 7, 0), Duration::ZERO);
    }
}
