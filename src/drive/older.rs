//! Which older slots of a job forbid a start: those whose run may still be going on. Pure.

use std::time::Duration;

use crate::job::{Concurrency, Policy};
use crate::schedule::Timetable;
use crate::slot::Slot;

/// How far back an older run of a job without a timeout is looked for.
const UNBOUNDED_RUN: Duration = Duration::from_secs(7 * 86_400);

/// How many older slots one claim names at the most: half an hour of a job that ticks every four seconds.
pub const MOST_OLDER: usize = 512;

/// The older slots whose lease forbids a start of this one, newest first; none where the job may overlap itself.
pub fn older_slots(timetable: &Timetable, policy: &Policy, slot: &Slot) -> Vec<Slot> {
    if policy.concurrency == Concurrency::Allow {
        return Vec::new();
    }
    timetable.older(slot, longest_run(policy), MOST_OLDER)
}

/// How far back an older slot's lease can still stand, unless its node stood still: nobody stops the command at its timeout
/// meanwhile. Such a node names the slots that it runs itself whatever their age.
pub fn longest_run(policy: &Policy) -> Duration {
    policy.timeout.map_or(UNBOUNDED_RUN, |timeout| timeout + policy.kill_after + policy.lease_ttl)
}
