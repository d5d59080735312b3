//! What is said of a slot whose job no daemon plans: a crontab's line starts it with `cronward exec`, or a service calls for
//! it. No file has its command, so no verb here can run it. Pure.

use crate::cli::text::brief;
use crate::cli::why::{Explanation, Facts};
use crate::clock::between;
use crate::store::JobOrigin;

/// Who knows the job, and what they did not do.
const fn nobody(origin: JobOrigin) -> &'static str {
    match origin {
        JobOrigin::Service => "only a service knows this job, and none of its processes has called for this slot",
        JobOrigin::File | JobOrigin::Crontab => "only a crontab knows this job, and none has started it in this slot",
    }
}

/// What runs the slot once more; in words, where that is no command of this program.
pub(super) fn again(facts: &Facts) -> String {
    let slot = &facts.record.slot;
    match (facts.job.origin, facts.is_over()) {
        // It is not for pasting: marked without a look, a miss would be hidden.
        (_, true) => {
            let then = facts.store.command(format_args!("mark-done {slot}"));
            format!("if it is still wanted, do its work by hand, and then `{then}`")
        }
        (JobOrigin::Service, false) => "let its service call for the slot: its next call runs it".to_owned(),
        (JobOrigin::File | JobOrigin::Crontab, false) => {
            "start its crontab's line by hand, on any of its machines".to_owned()
        }
    }
}

/// Not over, never claimed. `obstacle` is what those who asked were told.
pub(super) fn pending(facts: &Facts, obstacle: Option<String>) -> Explanation {
    let start = facts.record.slot.start();
    if facts.now < start {
        let wait = brief(between(facts.now, start));
        return Explanation::fine(format!("it has not begun: it begins at {}, in {wait}", facts.at(start)));
    }
    let why = obstacle.unwrap_or_else(|| nobody(facts.job.origin).to_owned());
    Explanation::mended(format!("it has not run yet: {why}"), again(facts))
}

/// Over, never claimed, and nobody noted why.
pub(super) fn unheard(facts: &Facts) -> Explanation {
    Explanation::mended(format!("it did not run: {}", nobody(facts.job.origin)), again(facts))
}
