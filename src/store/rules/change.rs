//! What a step has made of a slot, for a store to write: all of it at once, or nothing.

use super::SlotStep;
use crate::slot::{Attempt, JobLatest, RunRecord, Slot};
use crate::store::state::{Moment, SlotState, StoredMark};
use crate::store::{ChangeHint, Wake};

/// What a step has done to the mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) enum MarkChange {
    Keep,
    /// The same lease lasts until then.
    Prolong(StoredMark),
    Put(StoredMark),
    Remove,
}

/// What has to be written after a step, all of it at once.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(all(feature = "etcd", feature = "sqlite", feature = "zookeeper")),
    allow(dead_code, reason = "each store writes what it keeps apart; the one in memory keeps it whole")
)]
pub(in crate::store) struct Change {
    /// The slot afterwards.
    pub(in crate::store) state: SlotState,
    pub(in crate::store) mark: MarkChange,
    /// What the counter becomes; zero is none.
    pub(in crate::store) counter: Option<Attempt>,
    /// Whether anything but the mark has changed.
    pub(in crate::store) log: bool,
    /// The run whose record is new or has changed, with what becomes of its output: none is no output any more.
    pub(in crate::store) run: Option<RunRecord>,
    /// What was recorded before was kept for its time and goes, the outputs too.
    pub(in crate::store) forgets: bool,
    /// What the job has come to lately, where that has changed.
    pub(in crate::store) latest: Option<JobLatest>,
    /// What is told once it is written.
    pub(in crate::store) wake: Option<Wake>,
}

impl MarkChange {
    fn between(before: Option<&StoredMark>, after: Option<&StoredMark>) -> Self {
        match (before, after) {
            (before, after) if before == after => Self::Keep,
            (_, None) => Self::Remove,
            (Some(before), Some(after)) if is_prolonged(before, after) => Self::Prolong(after.clone()),
            (_, Some(after)) => Self::Put(after.clone()),
        }
    }
}

fn is_prolonged(before: &StoredMark, after: &StoredMark) -> bool {
    after.is_lease() && StoredMark { until: after.until, ..before.clone() } == *after
}

impl Change {
    /// What a step has made of what was stored.
    pub(in crate::store) fn between(stored: &SlotState, step: SlotStep, at: Moment) -> Self {
        let SlotStep { slot, state: mut after, wake, read_latest, latest, .. } = step;
        let before = stored.current(at);
        let log = after.differs(&before);
        let outdated = stored.is_outdated(at);
        let run = after.runs.iter().find(|run| !before.runs.contains(run)).cloned();
        for run in &mut after.runs {
            run.output = run.lost_output();
        }
        let run = run.map(|run| RunRecord { output: run.output.filter(|output| !output.is_lost()), ..run });
        after.touched = if log { Some(at.now.max(slot.end())) } else { stored.touched };
        Self {
            mark: MarkChange::between(before.mark.as_ref(), after.mark.as_ref()),
            counter: (after.counter != before.counter || (log && outdated)).then_some(after.counter),
            log,
            run,
            forgets: log && outdated,
            latest: read_latest.filter(|read| *read != latest).map(|_| latest),
            wake: wake.map(|what| Wake::Slot { job: slot.job().clone(), key: slot.key(), what }),
            state: after,
        }
    }

    /// Whether nothing has to be written.
    pub(in crate::store) fn is_none(&self) -> bool {
        self.mark == MarkChange::Keep && !self.log && self.latest.is_none()
    }

    /// What whoever looks on is told once it is written; nothing where only a lease lasts longer.
    pub(in crate::store) fn hint(&self, slot: &Slot) -> Option<ChangeHint> {
        let is_moved = matches!(self.mark, MarkChange::Put(_) | MarkChange::Remove);
        (is_moved || self.log).then(|| ChangeHint::of(slot))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::later;
    use crate::job::NodeName;
    use crate::slot::{Audit, Lease, Outcome, OutputTail, SlotRecord, Token};
    use crate::store::ClaimRequest;
    use crate::store::state::MarkKind;

    const LEASE: Duration = Duration::from_secs(60);
    const DAY: Duration = Duration::from_secs(86_400);

    fn slot() -> Slot {
        Slot::parse("job", "2026-11-21T14Z", "2026-11-21T15Z").unwrap()
    }

    fn at(since: Duration) -> Moment {
        Moment { now: later(slot().start(), since), retention: DAY }
    }

    fn request(token: u128) -> ClaimRequest {
        ClaimRequest::new(slot(), Token::from_bits(token), NodeName::new("a").unwrap(), LEASE, 3)
    }

    fn after<T>(stored: &SlotState, at: Moment, rule: impl FnOnce(&mut SlotStep) -> T) -> Change {
        let step = SlotStep::new(&slot(), stored.current(at), at.now);
        let mut step = step.with_latest(Some(JobLatest::default()));
        rule(&mut step);
        Change::between(stored, step, at)
    }

    /// A slot that is leased by attempt 1 from its start on, and the lease.
    fn leased() -> (SlotState, Lease) {
        let granted = after(&SlotState::default(), at(Duration::ZERO), |step| step.claim(&request(1)));
        (granted.state, request(1).granted(1, slot().start()))
    }

    fn told(text: &str) -> Option<OutputTail> {
        Some(OutputTail { text: text.to_owned(), dropped_bytes: 0, loss: None })
    }

    #[test]
    fn a_grant_is_written_whole_and_a_refusal_and_a_repetition_write_nothing() {
        let granted = after(&SlotState::default(), at(Duration::ZERO), |step| step.claim(&request(1)));
        let (stored, lease) = leased();
        assert!(granted.log && matches!(&granted.mark, MarkChange::Put(mark) if mark.is_lease()));
        assert_eq!((granted.counter, granted.run), (Some(1), Some(RunRecord::begun(&lease))));
        assert!(after(&stored, at(LEASE / 2), |step| step.claim(&request(2))).is_none());
        let run = RunRecord::ended(&lease, Outcome::Success);
        let done = after(&stored, at(LEASE / 2), |step| step.complete(&lease, &run, DAY));
        assert!(done.wake.is_some() && !done.is_none());
        let mut again = SlotStep::new(&slot(), done.state.clone(), at(LEASE).now).with_latest(done.latest);
        again.complete(&lease, &run, DAY);
        assert!(Change::between(&done.state, again, at(LEASE)).is_none());
    }

    #[test]
    fn a_renewal_prolongs_the_mark_and_leaves_the_rest() {
        let (stored, lease) = leased();
        let renewed = after(&stored, at(LEASE / 2), |step| step.renew(&lease));
        assert!(matches!(renewed.mark, MarkChange::Prolong(_)) && !renewed.log, "{renewed:?}");
        assert_eq!(renewed.hint(&slot()), None, "nothing is to be seen of it");
        assert_eq!(renewed.state.touched, stored.touched);
    }

    #[test]
    fn an_output_stands_apart_and_a_record_that_is_told_again_without_it_keeps_it() {
        let (stored, lease) = leased();
        let run = RunRecord { output: told("x"), ..RunRecord::ended(&lease, Outcome::Failure) };
        let failed = after(&stored, at(LEASE / 2), |step| step.fail(&lease, &run, LEASE));
        assert_eq!(failed.run, Some(run.clone()));
        assert!(failed.state.runs.iter().all(|run| run.output.is_none()));
        let again = RunRecord { output: None, ..run };
        assert!(after(&failed.state, at(LEASE / 2), |step| step.fail(&lease, &again, LEASE)).is_none());
        let success = RunRecord { output: None, ..RunRecord::ended(&lease, Outcome::Success) };
        let replaced = after(&failed.state, at(LEASE / 2), |step| step.complete(&lease, &success, DAY));
        assert_eq!(replaced.run, Some(success), "and its output goes with the record that it belonged to");
    }

    #[test]
    fn what_was_kept_for_its_time_is_forgotten_by_the_next_change_and_the_mark_is_not() {
        let (stored, lease) = leased();
        let (late, audit) = (
            at(DAY * 2),
            Audit {
                verb: "reset".to_owned(),
                who: "alice".to_owned(),
                host: String::new(),
                why: String::new(),
                at: slot().start(),
            },
        );
        assert_eq!(stored.record(&slot(), late), SlotRecord::untouched(slot()));
        let reset = after(&stored, late, |step| step.reset(&audit));
        assert!(reset.forgets && reset.state.runs.is_empty());
        assert_eq!((reset.counter, reset.state.audit.len()), (Some(0), 1));
        let mark = StoredMark { kind: MarkKind::Lease(lease.token), ..stored.mark.clone().unwrap() };
        let outlives = SlotState { mark: Some(StoredMark { until: later(late.now, LEASE), ..mark }), ..stored };
        let renewed = after(&outlives, late, |step| step.renew(&lease));
        assert_eq!((renewed.forgets, renewed.log, renewed.mark), (false, false, MarkChange::Keep));
    }

    #[test]
    fn the_json_of_a_state_is_without_the_mark_and_the_counter() {
        let (stored, _) = leased();
        let text = serde_json::to_string(&stored).unwrap();
        assert!(!text.contains("mark") && !text.contains("counter") && text.contains("touched_ms"), "{text}");
        let read: SlotState = serde_json::from_str(&text).unwrap();
        assert_eq!(SlotState { mark: stored.mark.clone(), counter: stored.counter, ..read }, stored);
        assert!(serde_json::from_str::<SlotState>("{}").is_err(), "when it was touched has to be said");
    }
}
