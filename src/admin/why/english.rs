//! Why a slot ran or did not, in English: as commands say it, and the API.

use crate::admin::command_line::{no_start, starter};
use crate::admin::why::texts::{AttemptReasons, ClaimObstacle, ClaimReasons, SlotReasons, StarterReasons, WhyTexts};
use crate::admin::words::{brief, ending, missed_after};
use crate::slot::Overlap;
use crate::store::JobOrigin;

/// English.
pub(crate) const ENGLISH: WhyTexts = WhyTexts {
    span: brief,
    and: "; ",
    slot: SLOT,
    attempt: AttemptReasons {
        none: "no attempt is recorded",
        lost: |node, attempt, at, doubt| {
            let lost = if doubt { "could not renew the lease in time" } else { "did not report a result" };
            format!("node {node} claimed attempt {attempt} at {at} and {lost}")
        },
        running: |attempt, node| format!("attempt {attempt} on node {node} is running"),
        given_back: |attempt, node, at, why| {
            let (at, why) = (after(" at ", at), after(": ", why));
            format!("attempt {attempt} on node {node} was given back{at}{why}")
        },
        ended: |attempt, node, how| format!("attempt {attempt} on node {node} ended with {how}"),
        ending,
        cause: |message| format!(": {message}"),
    },
    claim: ClaimReasons {
        kept: |nodes, what| {
            let what = match what {
                ClaimObstacle::Blocked => "found another slot of the job still running",
                ClaimObstacle::Paused => "found the job paused",
                ClaimObstacle::TooLate => "came too late: the start deadline had passed",
                ClaimObstacle::Shed => "had no capacity: the slot ended before the command could start",
                ClaimObstacle::Early => "claimed the slot before its start by the store's clock",
                ClaimObstacle::Closed => "claimed the slot after its end by the store's clock",
            };
            format!("{} {what}", names(nodes))
        },
        blocker: |slot, node, at, left| {
            format!(": {slot} is held by node {node}; its lease expires at {at}, in {left}, unless renewed")
        },
        store_away: |nodes, error| format!("{} could not use the store ({error})", names(nodes)),
        only_on: |wanted, nodes| {
            let (wanted, have) = (wanted.unwrap_or("another label"), if nodes.len() == 1 { "does" } else { "do" });
            format!("only_on requires {wanted}, and {} {have} not have that label", names(nodes))
        },
    },
    starter: StarterReasons {
        who: starter,
        after_reset: |starts| format!("; after a reset the slot runs when {starts} again"),
        nobody: |origin| match origin {
            JobOrigin::Service => {
                "the job runs only in a service, and no process of the service has called for this slot"
            }
            JobOrigin::File | JobOrigin::Crontab => {
                "the job runs only from a crontab, and no crontab has started it in this slot"
            }
        },
        by_hand: |then| format!("if the work is still needed, do it manually, then `{then}`"),
        again: |origin| match origin {
            JobOrigin::Service => "let the service call for the slot: the next call runs it",
            JobOrigin::File | JobOrigin::Crontab => "run the crontab's line manually, on any of its machines",
        },
    },
};

const SLOT: SlotReasons = SlotReasons {
    who: |person, host| format!("{person} on {host}"),
    paused: |who, at, why, left| {
        let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
        let until = left.map_or_else(|| "until the job is resumed".to_owned(), |left| format!("for another {left}"));
        format!("the slot does not run: {who} paused the job at {at}{why}, {until}")
    },
    done: "the slot is done",
    marked: |who, at, succeeded| {
        let run = if succeeded { "; an attempt had succeeded before a reset" } else { ", without a run" };
        format!("the slot counts as done: {who} marked it as done at {at}{run}")
    },
    ran: |node, at, attempt, before, successes, overlap| {
        let after = match before {
            0 => String::new(),
            1 => ", after 1 attempt without success".to_owned(),
            more => format!(", after {more} attempts without success"),
        };
        let twice = match (successes, overlap) {
            (0 | 1, _) => String::new(),
            (_, Overlap::Sure) => format!("; {successes} attempts succeeded: the runs overlapped"),
            (_, Overlap::Possible) => format!("; {successes} attempts succeeded: the runs may have overlapped"),
            (_, Overlap::No) => format!("; {successes} attempts succeeded, one after the other"),
        };
        format!("the slot ran: node {node} completed it at {at} with attempt {attempt}{after}{twice}")
    },
    stood_still: |node, attempt, after, by| {
        format!("attempt {attempt} ended between {after} and {by}: node {node} stood still")
    },
    running: "the slot is running",
    running_on: |node, since, attempt, left| {
        let since = after(" since ", since);
        format!(
            "the slot is running: node {node} has held the lease{since} with attempt {attempt}; the lease expires in {left} unless renewed"
        )
    },
    held_past_end: |node, since, attempt, left, end| {
        let since = after(" since ", since);
        format!(
            "the slot ended at {end} and is not done: node {node} has held the lease{since} with attempt {attempt}; it still runs the \
             command, or it died: unless renewed, the lease expires in {left}"
        )
    },
    waits: |waits, node, since| {
        format!("the slot waits for {waits}; node {node} has held the lease{}", after(" since ", since))
    },
    waits_for: |locks, ahead, holder| format!("{locks}: {ahead} ahead, held by {holder}"),
    deadlock: |ring| {
        let steps: Vec<String> = ring.iter().map(|(who, lock)| format!("{who} waits for {lock}")).collect();
        format!("deadlock: {}, each behind the next", steps.join(", "))
    },
    holder,
    retry_in: |last, wait, starts| {
        let when = starts.map(|starts| format!(", when {starts} again")).unwrap_or_default();
        format!("the slot is not done yet: {last}; the next attempt may start in {wait}{when}")
    },
    retry_when: |last, used, of, starts| {
        format!(
            "the slot is not done yet: {last}; {used} of {of} attempts are used, the next attempt starts when {starts} again"
        )
    },
    retry_not: |last, why| format!("the slot is not done: {last}; no node tries again by itself: {}", no_start(why)),
    retry_by_nobody: |last| format!("the slot is not done: {last}, and no node is alive to retry"),
    retry: |last, used, of| format!("the slot is not done yet: {last}; {used} of {of} attempts are used"),
    failed: |used, last| format!("the slot failed: all {used} attempts are exhausted; {last}"),
    skipped_by: |who, at, why| {
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        format!("the slot was skipped: {who} paused the job at {at}{why}")
    },
    skipped: "the slot was skipped: the job was paused",
    is_disabled: "the slot does not run: the job is not enabled in the file that was registered last",
    was_disabled: "the slot did not run: the job was not enabled in the file that was registered last",
    no_tick: |schedule, over| format!("the slot {} not run: the schedule {schedule} does not fire in it", does(over)),
    scheduled: |at, wait, nobody| {
        let nobody = if nobody { ", and no node is alive" } else { "" };
        format!("the slot has not run yet: it is scheduled for {at}, in {wait}{nobody}")
    },
    starts: |at, wait| format!("the slot has not started: it starts at {at}, in {wait}"),
    not_yet: |why| format!("the slot has not run yet: {why}"),
    no_node: |late| format!("the slot has not run: it was scheduled {late} ago, and no node is alive"),
    unclaimed: |late| format!("the slot has not run yet: it was scheduled {late} ago, and no node has claimed it"),
    orphaned: |over, since| {
        let (does, since) = (does(over), after("; a node last had it there at ", since));
        let later = if since.is_empty() { "" } else { ", or within the hour after" };
        format!("the slot {does} not run: the job is not in any live node's file{since}{later}")
    },
    did_not_run: |why, then| format!("the slot did not run: {why}{}", after("; then ", then)),
    missed_after: |used, of, end, last, then| {
        let then = after("; then ", then);
        format!("the slot was {} at {end}; {last}{then}", missed_after(used, of))
    },
    no_success: |last, end, then| {
        let then = after("; then ", then);
        format!("no attempt of the slot succeeded: {last}; no other attempt started before {end}{then}")
    },
    not_owed: |over, at| {
        format!("the slot {} not run: the job is not due before {at}, when the cluster first knew it", does(over))
    },
    never_known: "the slot did not run: no node has ever run this job",
    known_later: |at| format!("the slot did not run: the job was first registered at {at}"),
    forgotten: |kept| format!("nothing is known of the slot any more: records are kept for {kept}"),
    nobody_alive: |last, started| {
        let started = after(", next node started at ", started);
        format!(
            "the slot did not run: no node reached the store from its scheduled time to its end (last heartbeat at {last}{started})"
        )
    },
    recorded,
    unheard: |closed| format!("the slot did not run: {UNKNOWN_REASON}{}", recorded(closed)),
};

/// Where the decision log says nothing.
pub(super) const UNKNOWN_REASON: &str =
    "no node was alive, or the nodes were overloaded, or they could not write their decision log";

/// Who holds: what for, on which node, since when.
pub(super) fn holder(node: &str, label: &str, since: Option<&str>) -> String {
    let since = after(" since ", since);
    if label.is_empty() { format!("node {node}{since}") } else { format!("{label} on node {node}{since}") }
}

fn after(word: &str, said: Option<&str>) -> String {
    said.map(|said| format!("{word}{said}")).unwrap_or_default()
}

/// Which node recorded the miss, and when.
fn recorded(closed: Option<(&str, &str)>) -> String {
    closed.map(|(node, at)| format!("; node {node} recorded the slot as missed at {at}")).unwrap_or_default()
}

const fn does(over: bool) -> &'static str {
    if over { "did" } else { "does" }
}

fn names(names: &[&str]) -> String {
    match names {
        [] => "no node".to_owned(),
        [one] => format!("node {one}"),
        [first @ .., last] => format!("nodes {} and {last}", first.join(", ")),
    }
}
