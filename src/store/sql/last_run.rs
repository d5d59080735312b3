//! What a slot's runs come to, where the one that was written last stands in the slot's row and the others beside it. Pure.

use super::image::{Runs, StoredMark};
use super::slots::Subject;
use crate::slot::RunRecord;

/// Adds the run in the row to what the others come to. Where they have it as well, theirs is the older form.
pub(super) fn with_last(runs: &mut Runs, last: RunRecord, subject: &Subject, mark: Option<&StoredMark>) {
    runs.newest = runs.newest.max(last.attempt);
    if is_own(&last, subject, mark) && runs.own.as_ref().is_none_or(|own| own.attempt <= last.attempt) {
        runs.own = Some(last.clone());
    }
    // A request that names no token has no others.
    let Some(token) = subject.token else { return };
    if last.token == token {
        runs.spent |= last.outcome.is_some();
        return;
    }
    if runs.newest_other <= last.attempt {
        runs.newest_other = last.attempt;
        runs.newest_other_node = Some(last.node.clone());
    }
    let since = |run: &RunRecord| (run.claimed_at, run.attempt);
    if last.attempt > 0 && runs.latest_other.as_ref().is_none_or(|latest| since(latest) <= since(&last)) {
        runs.latest_other = Some(last);
    }
}

/// Whether it is the run that the request names: its lease's, its token's, or the current lease's.
fn is_own(run: &RunRecord, subject: &Subject, mark: Option<&StoredMark>) -> bool {
    match (subject.token, mark) {
        (Some(token), _) => run.token == token && subject.attempt.is_none_or(|attempt| attempt == run.attempt),
        (None, Some(mark)) => {
            Some(run.token) == mark.token() && run.attempt == subject.attempt.unwrap_or(mark.by.attempt)
        }
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};

    use super::*;
    use crate::job::NodeName;
    use crate::slot::{Attempt, Holder, Outcome, Slot, Token, Trigger};
    use crate::store::image::Standing;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    fn token(claimer: u128) -> Token {
        Token::from_bits(claimer)
    }

    fn run(attempt: Attempt, claimer: u128, claimed: i64, outcome: Option<Outcome>) -> RunRecord {
        RunRecord {
            attempt,
            token: token(claimer),
            node: NodeName::new(&format!("node-{claimer}-{attempt}")).unwrap(),
            trigger: Trigger::Schedule,
            claimed_at: at(claimed),
            started_at: None,
            ended_at: None,
            duration_ms: None,
            outcome,
            exit_code: None,
            signal: None,
            message: None,
            output: None,
        }
    }

    /// What they come to as `slot_load.sql` tells it, where all of them are in one table.
    fn all(runs: &[RunRecord], subject: &Subject, mark: Option<&StoredMark>) -> Runs {
        let own = runs.iter().filter(|run| is_own(run, subject, mark)).max_by_key(|run| run.attempt);
        let others = || runs.iter().filter(|run| subject.token.is_some_and(|token| token != run.token));
        let newest_other = others().max_by_key(|run| run.attempt);
        let latest = others().filter(|run| run.attempt > 0).max_by_key(|run| (run.claimed_at, run.attempt));
        let spent = |run: &RunRecord| Some(run.token) == subject.token && run.outcome.is_some();
        Runs {
            own: own.cloned(),
            newest: runs.iter().map(|run| run.attempt).max().unwrap_or(0),
            newest_other: newest_other.map_or(0, |run| run.attempt),
            newest_other_node: newest_other.map(|run| run.node.clone()),
            latest_other: latest.cloned(),
            spent: runs.iter().any(spent),
        }
    }

    /// Numbers began anew after a loss: attempt 1 of the third claimer is younger than attempt 2 of the first. Attempt 0 has
    /// no guard.
    fn history() -> Vec<RunRecord> {
        let failed = Some(Outcome::Failure);
        vec![
            run(1, 1, 10, failed),
            run(2, 1, 20, None),
            run(3, 2, 30, failed),
            run(1, 3, 40, None),
            run(0, 4, 50, failed),
        ]
    }

    #[test]
    fn whichever_run_is_in_the_row_all_of_them_come_to_the_same() {
        let slot = Slot::parse("job", "2026-11-22T08Z", "2026-11-22T09Z").unwrap();
        let leased = |claimer, attempt: Attempt| StoredMark {
            standing: Standing::Lease(token(claimer)),
            by: Holder { node: NodeName::new("node").unwrap(), attempt },
            since: at(0),
            until: at(99),
        };
        let subjects = (0..6).flat_map(|claimer| {
            let of =
                |attempt| Subject { token: (claimer > 0).then(|| token(claimer)), attempt, ..Subject::slot(&slot) };
            [of(None), of(Some(1)), of(Some(2))]
        });
        let marks = [None, Some(leased(1, 2)), Some(leased(3, 1)), Some(leased(9, 1))];
        for (subject, mark) in
            subjects.flat_map(|subject| marks.iter().map(move |mark| (subject.clone(), mark.as_ref())))
        {
            let whole = history();
            let expected = format!("{:?}", all(&whole, &subject, mark));
            for last in 0..whole.len() {
                let mut others = whole.clone();
                let in_row = others.remove(last);
                let mut told = all(&others, &subject, mark);
                with_last(&mut told, in_row.clone(), &subject, mark);
                assert_eq!(format!("{told:?}"), expected, "{last} of {subject:?} {mark:?}");
                // A copy that was made before the run ended.
                others.push(RunRecord { outcome: None, ..in_row.clone() });
                let mut told = all(&others, &subject, mark);
                with_last(&mut told, in_row, &subject, mark);
                assert_eq!(format!("{told:?}"), expected, "{last} of {subject:?} {mark:?}, and its copy");
            }
        }
    }

    #[test]
    fn an_only_run_is_all_there_is() {
        let slot = Slot::parse("job", "2026-11-22T08Z", "2026-11-22T09Z").unwrap();
        let subject = Subject { token: Some(token(2)), ..Subject::slot(&slot) };
        let mut runs = Runs::default();
        with_last(&mut runs, run(1, 1, 10, None), &subject, None);
        assert_eq!((runs.newest, runs.newest_other, runs.own), (1, 1, None));
    }
}
