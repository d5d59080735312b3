//! The keys of a job's limits and policies, their bounds and their words.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::config::reader::{LONGEST, Section, put};
use crate::job::{Backoff, Concurrency, MAX_ATTEMPTS_LIMIT, OnLost, OnStoreError, Policy, SHORTEST_LEASE_TTL};

const fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

/// One longer than a day is no lease.
const LEASE_TTL: RangeInclusive<Duration> = SHORTEST_LEASE_TTL..=seconds(86_400);
const DONE_TTL: RangeInclusive<Duration> = seconds(1)..=LONGEST;
const RETRY: RangeInclusive<Duration> = Duration::ZERO..=seconds(7 * 86_400);
const KILL_AFTER: RangeInclusive<Duration> = Duration::ZERO..=seconds(3_600);
const START_DEADLINE: RangeInclusive<Duration> = seconds(1)..=LONGEST;
/// Zero is the word for "no limit", so that an environment variable can say it too.
const TIMEOUT: RangeInclusive<Duration> = Duration::ZERO..=LONGEST;

/// Takes over what a section says.
pub(super) fn read(section: &Section<'_>, policy: &mut Policy) {
    put(&mut policy.lease_ttl, section.duration("lease_ttl", LEASE_TTL));
    put(&mut policy.done_ttl, section.duration("done_ttl", DONE_TTL));
    put(&mut policy.max_attempts, max_attempts(section));
    put(&mut policy.retry.delay, section.duration("retry_delay", RETRY));
    put(&mut policy.retry.max_delay, section.duration("retry_max_delay", RETRY));
    put(&mut policy.timeout, timeout(section));
    put(&mut policy.kill_after, section.duration("kill_after", KILL_AFTER));
    put(&mut policy.start_deadline, start_deadline(section));
    read_words(section, policy);
}

fn read_words(section: &Section<'_>, policy: &mut Policy) {
    let backoffs = [("fixed", Backoff::Fixed), ("exponential", Backoff::Exponential)];
    put(&mut policy.retry.backoff, section.word("retry_backoff", &backoffs));
    put(&mut policy.on_lost, section.word("on_lost", &[("continue", OnLost::Continue), ("kill", OnLost::Kill)]));
    let on_store_error = [("skip", OnStoreError::Skip), ("run", OnStoreError::Run)];
    put(&mut policy.on_store_error, section.word("on_store_error", &on_store_error));
    let concurrency =
        [("forbid", Concurrency::Forbid), ("allow", Concurrency::Allow), ("replace", Concurrency::Replace)];
    put(&mut policy.concurrency, section.word("concurrency", &concurrency));
}

fn max_attempts(section: &Section<'_>) -> Option<u32> {
    let number = section.entry("max_attempts")?.integer(1..=i64::from(MAX_ATTEMPTS_LIMIT), 3)?;
    u32::try_from(number).ok()
}

/// `"none"` and `"0s"` mean no limit.
fn timeout(section: &Section<'_>) -> Option<Option<Duration>> {
    let duration = section.word_or_duration("timeout", "none", TIMEOUT)?;
    Some(duration.filter(|limit| !limit.is_zero()))
}

/// `"slot"` means while the slot lasts.
fn start_deadline(section: &Section<'_>) -> Option<Option<Duration>> {
    section.word_or_duration("start_deadline", "slot", START_DEADLINE)
}
