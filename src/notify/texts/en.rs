//! English. Sentences only.

use crate::notify::texts::form::Texts;

pub(super) const TEXTS: Texts = Texts {
    failed: "{job}@{slot} failed: {used} of {max} attempts on {nodes}; {how}",
    missed: "{job}@{slot} was missed: the slot ended without a success",
    missed_several: "{job}: {count} slots from {first} to {slot} were missed: none of them ended with a success",
    late: "{job} is late: the last success was slot {slot}, and alert_after is {after}",
    late_never: "{job} is late: no success is known, and alert_after is {after}",
    overlap: "{job}@{slot}: two runs may have overlapped",
    recovered: "{job} works again; it had failed since slot {slot}",
    reminder: "{job} still fails, since slot {slot}",
    started: "{job}@{slot} started: attempt {number} on {node}",
    succeeded: "{job}@{slot} succeeded",
    attempt_failed: "{job}@{slot}: attempt {number} failed on {node}; {how}",
    paused: "{job} was paused",
    resumed: "{job} was resumed",
    node_silent: "Node {node} is lost: last heartbeat at {at}",
    config_rejected: "Node {node} refused the changed file; the old jobs stay in force",
    failed_bare: "{job}@{slot} failed: no attempt is left",
    exit: "exit {code}",
    signal: "killed by signal {code}",
    outcome: "ended as {outcome}",
    output: "Last lines of the output:",
    owner: "Owner: {owner}",
    runbook: "Runbook: {runbook}",
    page: "Page: {page}",
    rerun: "To run it again: {command}",
    look: "To see why: {command}",
    digest: "{count} events: {kinds}",
    digest_more: "and {count} more",
    test: "This is a test of cronward's sink {sink}; nothing has happened.",
};
