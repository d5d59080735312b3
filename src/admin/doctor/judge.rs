//! What was measured, and what it means for a slot. Pure.

use std::time::Duration;

use crate::admin::doctor::probe::{Left, Observed};
use crate::clock::CLOCK_OFF;
use crate::store::{Capability, Finding, Op, Reach, StoreClock, StoreError};

/// By what the measurements are judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thresholds {
    /// The shortest of all jobs.
    pub(super) lease_ttl: Duration,
    pub(super) op_timeout: Duration,
    /// A job names locks: without them it does not start.
    pub(super) needs_locks: bool,
    /// The store itself was found faulty: operations that fail for now are an effect of that.
    pub(super) cause_is_known: bool,
}

/// What is to be said.
pub(super) fn judge(observed: &Observed, capability: Capability, limits: Thresholds) -> Vec<Finding> {
    let calls = match &observed.calls {
        Ok(calls) => calls,
        Err(error) => return vec![unreachable(error)],
    };
    let mut findings = vec![Finding::ok("reachable", capability.name), latency(calls, limits)];
    findings.push(clock(observed.offset_ms, calls, capability.clock));
    findings.extend(rights(observed, limits));
    findings.extend(observed.left.iter().map(leftovers));
    // What was not released is not hinted at.
    let is_released = failed(&observed.tried).all(|(op, _)| op != Op::Fail);
    findings.extend(is_released.then(|| hints(observed, capability)));
    if !capability.durable {
        let effect = "acknowledged writes may be lost with the process: a slot may be granted twice";
        let found = "as durable as the server's persistence settings (see persistence)";
        // Redis' own settings are looked at by its adapter: this is what no setting changes.
        if capability.reach == Reach::Process {
            let fix = "[store] url: another store";
            findings.push(Finding::fault("durability", "the data ends with the process", effect, fix));
        } else {
            findings.push(Finding::ok("durability", found));
        }
    }
    findings
}

/// The store cannot be used at all.
pub(super) fn unreachable(error: &StoreError) -> Finding {
    let fix = if error.is_transient() { "[store] url, or start the store" } else { "[store] url, and docs/stores.md" };
    Finding::fault("reachable", error.message.clone(), "nothing is claimed: no slot starts", fix)
}

fn millis(span: Duration) -> String {
    format!("{:.1} ms", span.as_secs_f64() * 1_000.0)
}

fn latency(calls: &[Duration], limits: Thresholds) -> Finding {
    let mut sorted = calls.to_vec();
    sorted.sort();
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    let worst = sorted.last().copied().unwrap_or_default();
    let Thresholds { lease_ttl, op_timeout, .. } = limits;
    let found = format!(
        "{} (worst {}); lease_ttl {} s, op_timeout {} ms",
        millis(median),
        millis(worst),
        lease_ttl.as_secs(),
        op_timeout.as_millis()
    );
    if worst.saturating_mul(3) > lease_ttl {
        let effect = "a renewal may come too late: a second node starts while the first still runs";
        return Finding::fault("latency", found, effect, "[defaults] lease_ttl: at least ten times the latency");
    }
    // A new connection takes a round trip or two, and has half of the time limit for them.
    if worst.saturating_mul(4) > op_timeout {
        let effect = "calls run into op_timeout: claims and renewals are repeated, slots start late";
        let fix = format!("[store] op_timeout = \"{}ms\"", worst.saturating_mul(5).as_millis());
        return Finding::warning("latency", found, effect, fix);
    }
    Finding::ok("latency", found)
}

fn clock(offset_ms: i64, calls: &[Duration], whose: StoreClock) -> Finding {
    match whose {
        StoreClock::Host => return Finding::ok("clock", "the store uses this host's clock"),
        StoreClock::Node => return Finding::ok("clock", "each node uses its own clock: run NTP on every node"),
        StoreClock::Server | StoreClock::Servers => {}
    }
    let uncertain = calls.iter().min().copied().unwrap_or_default();
    let off = Duration::from_millis(offset_ms.unsigned_abs());
    let sign = if offset_ms < 0 { '-' } else { '+' };
    let found = format!("this machine's clock is {sign}{} ms from the store's clock", off.as_millis());
    if off > CLOCK_OFF.saturating_add(uncertain) {
        let effect = "the store refuses claims that are too early or too late; cronward uses the store's clock, cron uses this machine's";
        return Finding::warning("clock", found, effect, "run NTP here (chronyc tracking)");
    }
    Finding::ok("clock", found)
}

const GRANT: &str = "grant what docs/stores.md lists under Permissions";

/// Operations without which no slot is done.
const VITAL: [Op; 7] = [Op::Claim, Op::Renew, Op::Complete, Op::Fail, Op::Inspect, Op::Close, Op::Register];

/// Operations without which no job is done that names locks.
const VITAL_WITH_LOCKS: [Op; 3] = [Op::Acquire, Op::RenewLock, Op::Release];

/// What was tried and failed.
type Failed<'a> = (Op, &'a StoreError);

fn failed(tried: &[(Op, Option<StoreError>)]) -> impl Iterator<Item = Failed<'_>> {
    tried.iter().filter_map(|(op, error)| Some((*op, error.as_ref()?)))
}

fn rights(observed: &Observed, limits: Thresholds) -> Vec<Finding> {
    let Observed { tried, servers, locks, .. } = observed;
    let told = |failed: &Failed<'_>| told(failed, limits.needs_locks);
    let of_all: Vec<Failed<'_>> = failed(tried).chain(failed(&locks.tried)).collect();
    let is_refused_by_all = |op: Op| of_all.iter().any(|(other, _)| *other == op);
    // Of a server by itself only what it refuses is told: whether it can be reached is found otherwise.
    let refused = servers.iter().flat_map(|server| {
        let refused = failed(&server.tried).filter(|(_, error)| !error.is_transient());
        refused.map(|failed| (failed, server.is_replaceable && !is_refused_by_all(failed.0)))
    });
    let refused: Vec<(Failed<'_>, bool)> = refused.collect();
    // Who refused it is told there, with its name.
    let is_told = |(op, error): &Failed<'_>| !error.is_transient() && refused.iter().any(|((other, _), _)| other == op);
    let mut findings = if limits.cause_is_known { Vec::new() } else { unanswered(&of_all) };
    let denied = of_all.iter().filter(|failed| !failed.1.is_transient() && !is_told(failed));
    findings.extend(denied.map(told));
    for (failed, is_spare) in &refused {
        let finding = if *is_spare { told_of_spare(failed) } else { told(failed) };
        // Two servers may have been asked about keys that the same one keeps.
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
    if findings.is_empty() && of_all.is_empty() {
        let each = if servers.is_empty() { String::new() } else { format!(" at each of {} servers", servers.len()) };
        let count = tried.len().saturating_add(locks.tried.len());
        let found = format!("all {count} operations are allowed: each was tried{each}");
        findings.push(Finding::ok("rights", found));
    }
    findings
}

/// Operations that fail for now, one finding for each reason.
fn unanswered(failed: &[Failed<'_>]) -> Vec<Finding> {
    let mut reasons: Vec<(&str, Vec<Op>)> = Vec::new();
    for (op, error) in failed.iter().filter(|(_, error)| error.is_transient()) {
        match reasons.iter_mut().find(|(reason, _)| *reason == error.message) {
            Some((_, ops)) => ops.push(*op),
            None => reasons.push((&error.message, vec![*op])),
        }
    }
    let fix = "check the store's load and its log";
    let finding = |(reason, ops): (&str, Vec<Op>)| {
        let first = ops.first().map(ToString::to_string).unwrap_or_default();
        let more = ops.len().saturating_sub(1);
        let found = if more == 0 { format!("{first}: {reason}") } else { format!("{first} and {more} more: {reason}") };
        if [Op::Claim, Op::Renew, Op::Complete].iter().all(|vital| ops.contains(vital)) {
            return Finding::fault("rights", found, effect_of(Op::Claim), fix);
        }
        Finding::warning("rights", found, "operations without an answer are repeated: slots start late", fix)
    };
    reasons.into_iter().map(finding).collect()
}

fn told((op, error): &Failed<'_>, needs_locks: bool) -> Finding {
    let found = format!("{op}: {}", error.message);
    if VITAL.contains(op) || (needs_locks && VITAL_WITH_LOCKS.contains(op)) {
        return Finding::fault("rights", found, effect_of(*op), GRANT);
    }
    Finding::warning("rights", found, effect_of(*op), GRANT)
}

/// Refused by one server whose work the others do.
fn told_of_spare((op, error): &Failed<'_>) -> Finding {
    let effect = "this server counts as unreachable: when a majority is unreachable, nothing is claimed";
    Finding::warning("rights", format!("{op}: {}", error.message), effect, GRANT)
}

/// What was tried could not be removed.
fn leftovers(left: &Left) -> Finding {
    let Left { trial, why } = left;
    let fix = "grant what docs/stores.md lists under Permissions; then delete that name from the jobs, nodes, pauses and locks";
    let (name, effect) = match (&trial.job, &trial.lock) {
        (None, Some(lock)) => (lock.as_str(), "listings show a lock of that name that nobody uses"),
        (Some(job), _) => (job.as_str(), "listings show a job and a node of that name that do not exist"),
        (None, None) => ("", "listings show what does not exist"),
    };
    let found = format!("{name} was not removed: {why}");
    Finding::warning("leftovers", found, effect, fix)
}

const fn effect_of(op: Op) -> &'static str {
    match op {
        Op::Claim | Op::Register => "nothing is claimed: no slot starts",
        Op::GiveBack => "a run that a drain stops counts as an attempt, and another node takes over late",
        Op::Heartbeat => "listings do not show which nodes are alive",
        Op::Pause | Op::Resume => "operators cannot pause a job",
        Op::Purge => "old records are kept: the store grows until it is full",
        Op::Renew => "leases expire while their commands run: a second node starts the same slot",
        Op::Complete | Op::Fail => "finished runs are not recorded: another node runs the slot again",
        Op::Inspect => "the state of slots cannot be read",
        Op::Close => "missed slots are not reported",
        Op::Note | Op::Notes => "cronward why has no decision log",
        Op::Jobs | Op::Nodes | Op::Pauses | Op::Latest => "listings are incomplete",
        Op::Tell | Op::Told | Op::Untold => "no node can claim a notification: none is sent",
        Op::Acquire | Op::RenewLock | Op::Release => {
            "locks cannot be taken or kept: a job that names one does not start"
        }
        Op::Locks => "cronward locks lists nothing",
        Op::Evict => "operators cannot take a lock from its holder",
        _ => "operators cannot change a slot",
    }
}

fn hints(observed: &Observed, capability: Capability) -> Finding {
    let poll = capability.poll;
    match (observed.hint_awaited, observed.hint) {
        (true, Some(_)) if observed.locks.hint == Some(false) => {
            let effect = "who waits for a lock notices that it is free only at its next look";
            let fix = "grant subscribing and publishing on the channels of locks too: docs/stores.md, Permissions";
            Finding::warning("notifications", "delivered about a slot, none arrived about a lock", effect, fix)
        }
        (true, Some(took)) => Finding::ok("notifications", format!("delivered after {}", millis(took))),
        (true, None) => {
            let effect = "waiting nodes notice a free slot only when they poll: retries start late";
            let fix = "grant subscribing and publishing: docs/stores.md, Permissions";
            Finding::warning("notifications", format!("none arrived; waiting nodes poll every {poll:?}"), effect, fix)
        }
        (false, _) => Finding::ok("notifications", format!("not supported; waiting nodes poll every {poll:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::doctor::lock_probe::LocksSeen;
    use crate::admin::doctor::probe::AtServer;
    use crate::store::{Applied, ErrorKind, Reach, Severity};

    const LIMITS: Thresholds = Thresholds {
        lease_ttl: Duration::from_secs(60),
        op_timeout: Duration::from_millis(500),
        needs_locks: false,
        cause_is_known: false,
    };

    const REDIS: Capability = Capability {
        name: "redis",
        reach: Reach::Network,
        clock: StoreClock::Server,
        push: true,
        poll: Duration::from_secs(5),
        durable: false,
        expires_records: true,
        locks: true,
        tells_changes: true,
        output_bytes: 1,
        messages: true,
    };

    fn healthy() -> Observed {
        Observed {
            calls: Ok(vec![Duration::from_millis(1); 9]),
            offset_ms: 12,
            tried: vec![(Op::Claim, None), (Op::Note, None)],
            hint: Some(Duration::from_millis(2)),
            hint_awaited: true,
            locks: LocksSeen { hint: Some(true), ..LocksSeen::default() },
            servers: Vec::new(),
            trials: Vec::new(),
            left: Vec::new(),
        }
    }

    fn denied(op: Op) -> StoreError {
        StoreError::new(ErrorKind::Denied, Applied::No, op, "redis://h", "this user may not run that")
    }

    fn trouble(observed: &Observed) -> Vec<String> {
        let bad = judge(observed, REDIS, LIMITS).into_iter().filter(|finding| finding.severity > Severity::Ok);
        bad.map(|finding| format!("{} {}", finding.check, finding.severity.as_str())).collect()
    }

    #[test]
    fn a_healthy_store_has_nothing_against_it() {
        assert_eq!(trouble(&healthy()), [""; 0]);
    }

    #[test]
    fn a_store_that_does_not_answer_is_one_error_and_nothing_else_is_said() {
        let gone = Observed { calls: Err(denied(Op::Inspect)), ..healthy() };
        assert_eq!(trouble(&gone), ["reachable error"]);
    }

    #[test]
    fn a_slow_way_is_judged_by_op_timeout_and_by_the_shortest_lease() {
        let slow = |millis| Observed { calls: Ok(vec![Duration::from_millis(millis); 9]), ..healthy() };
        assert_eq!(trouble(&slow(100)), [""; 0]);
        assert_eq!(trouble(&slow(300)), ["latency warning"]);
        assert_eq!(trouble(&slow(21_000)), ["latency error"]);
        let finding = judge(&slow(300), REDIS, LIMITS).remove(1);
        assert_eq!(finding.fix.as_deref(), Some("[store] op_timeout = \"1500ms\""));
    }

    #[test]
    fn a_clock_is_off_only_beyond_what_the_call_took() {
        assert_eq!(trouble(&Observed { offset_ms: -2_500, ..healthy() }), ["clock warning"]);
        let slow = Observed { offset_ms: 2_500, calls: Ok(vec![Duration::from_secs(1); 9]), ..healthy() };
        assert_eq!(trouble(&slow), ["latency warning"]);
    }

    #[test]
    fn a_refused_claim_is_an_error_and_refused_notes_are_a_warning() {
        let refused = |op| Observed { tried: vec![(op, Some(denied(op)))], ..healthy() };
        assert_eq!(trouble(&refused(Op::Claim)), ["rights error"]);
        assert_eq!(trouble(&refused(Op::Note)), ["rights warning"]);
        assert_eq!(trouble(&refused(Op::Reset)), ["rights warning"]);
    }

    #[test]
    fn a_refused_lock_is_a_warning_and_an_error_where_a_job_names_one() {
        let refused = |op| {
            let locks = LocksSeen { tried: vec![(op, Some(denied(op)))], ..LocksSeen::default() };
            Observed { locks, ..healthy() }
        };
        let severities = |op, needs_locks| {
            let findings = judge(&refused(op), REDIS, Thresholds { needs_locks, ..LIMITS });
            findings.iter().map(|finding| finding.severity).max()
        };
        for op in [Op::Acquire, Op::RenewLock, Op::Release] {
            assert_eq!(severities(op, false), Some(Severity::Warning), "{op}");
            assert_eq!(severities(op, true), Some(Severity::Fault), "{op}");
        }
        for op in [Op::Locks, Op::Evict] {
            assert_eq!(severities(op, true), Some(Severity::Warning), "{op}");
        }
    }

    #[test]
    fn a_hint_about_a_lock_that_does_not_arrive_is_told_beside_one_about_a_slot_that_does() {
        let deaf = Observed { locks: LocksSeen { hint: Some(false), ..LocksSeen::default() }, ..healthy() };
        assert_eq!(trouble(&deaf), ["notifications warning"]);
        let findings = judge(&deaf, REDIS, LIMITS);
        assert!(findings.iter().any(|finding| finding.found.ends_with("none arrived about a lock")), "{findings:?}");
    }

    #[test]
    fn what_one_server_refuses_is_told_once_and_is_no_error_where_the_others_do_its_work() {
        let at = |is_replaceable, op| AtServer { tried: vec![(op, Some(denied(op)))], is_replaceable };
        let well = || AtServer { tried: vec![(Op::Claim, None)], is_replaceable: true };
        let servers = |servers| Observed { servers, ..healthy() };
        assert_eq!(trouble(&servers(vec![well(), at(true, Op::Claim), well()])), ["rights warning"]);
        assert_eq!(trouble(&servers(vec![at(false, Op::Claim), at(false, Op::Claim)])), ["rights error"]);
        let tried = vec![(Op::Claim, Some(denied(Op::Claim)))];
        let most = Observed { tried, servers: vec![well(), at(true, Op::Claim)], ..healthy() };
        assert_eq!(trouble(&most), ["rights error"], "the others cannot do its work");
        let late = StoreError::new(ErrorKind::Timeout, Applied::No, Op::Claim, "redis://h", "no answer");
        let slow = AtServer { tried: vec![(Op::Claim, Some(late))], is_replaceable: false };
        assert_eq!(trouble(&servers(vec![slow])), [""; 0], "whether it answers is found otherwise");
    }

    #[test]
    fn one_reason_for_which_operations_fail_is_told_once_and_not_where_the_cause_is_known() {
        let late = |op| StoreError::new(ErrorKind::Unavailable, Applied::No, op, "redis://h", "too few replicas");
        let failing =
            |ops: &[Op]| Observed { tried: ops.iter().map(|op| (*op, Some(late(*op)))).collect(), ..healthy() };
        let all = failing(&[Op::Claim, Op::Renew, Op::Complete, Op::Note]);
        assert_eq!(trouble(&all), ["rights error"]);
        assert_eq!(trouble(&failing(&[Op::Note, Op::Notes])), ["rights warning"]);
        let known = judge(&all, REDIS, Thresholds { cause_is_known: true, ..LIMITS });
        assert!(known.iter().all(|finding| finding.check != "rights"), "{known:?}");
    }

    #[test]
    fn hints_that_do_not_arrive_are_told_where_they_should() {
        assert_eq!(trouble(&Observed { hint: None, ..healthy() }), ["notifications warning"]);
        assert_eq!(trouble(&Observed { hint: None, hint_awaited: false, ..healthy() }), [""; 0]);
    }
}
