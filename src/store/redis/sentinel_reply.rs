//! What each sentinel said last, and which server that makes the master. Pure.
//!
//! The highest epoch counts: a sentinel that is cut off from the others goes on naming the old master. Of one epoch whatever
//! most of them name, and what is known already where they are even: an address that is announced anew reaches one after the
//! other. Only the last answer of each counts, so that sentinels which are set up afresh, and whose epochs begin at 0 again,
//! are believed.

use std::collections::BTreeMap;

use super::members::Address;

/// A sentinel that could not be asked so often in a row, which is a quarter of a minute at least, is gone: what it said last is
/// no more than that.
const GONE: u32 = 60;

/// What is known of one sentinel.
#[derive(Clone, Debug, Default)]
struct SentinelReply {
    answer: Option<(Address, i64)>,
    /// Why it has not answered since.
    failure: Option<Failure>,
    failures: u32,
}

/// Why there is no answer, as a fragment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Failure {
    /// It cannot be reached, or stopped answering.
    Silent(String),
    /// It said so itself.
    Refused(String),
}

/// What the sentinels said last.
#[derive(Clone, Debug)]
pub(super) struct SentinelReplies(Vec<SentinelReply>);

impl SentinelReplies {
    pub(super) fn by(sentinels: usize) -> Self {
        Self(vec![SentinelReply::default(); sentinels])
    }

    /// A sentinel names the master.
    pub(super) fn answer(&mut self, sentinel: usize, address: Address, epoch: i64) {
        if let Some(reply) = self.0.get_mut(sentinel) {
            *reply = SentinelReply { answer: Some((address, epoch)), ..SentinelReply::default() };
        }
    }

    /// A sentinel refuses to answer, or cannot be asked. What it refused is kept until it answers: a time-out that follows
    /// tells nothing of what is to be mended.
    pub(super) fn failure(&mut self, sentinel: usize, failure: Failure) {
        let Some(reply) = self.0.get_mut(sentinel) else { return };
        let told =
            reply.failure.take().filter(|told| matches!((told, &failure), (Failure::Refused(_), Failure::Silent(_))));
        reply.failure = told.or(Some(failure));
        reply.failures = reply.failures.saturating_add(1);
        if reply.failures >= GONE {
            reply.answer = None;
        }
    }

    /// Why one of them does not answer: what was refused before what is silent.
    pub(super) fn why_not(&self) -> &str {
        match self.0.iter().filter_map(|reply| reply.failure.as_ref()).max() {
            Some(Failure::Refused(why) | Failure::Silent(why)) => why,
            None => "none can be reached",
        }
    }

    /// The master and its epoch, where any of them has named one.
    pub(super) fn master(&self, known: Option<&Address>) -> Option<(Address, i64)> {
        let answers = || self.0.iter().filter_map(|reply| reply.answer.as_ref());
        let epoch = answers().map(|(_, epoch)| *epoch).max()?;
        let mut votes: BTreeMap<&Address, usize> = BTreeMap::new();
        for (address, _) in answers().filter(|(_, of)| *of == epoch) {
            *votes.entry(address).or_default() += 1;
        }
        let most = votes.into_iter().max_by_key(|(address, votes)| (*votes, Some(*address) == known));
        most.map(|(address, _)| (address.clone(), epoch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> Address {
        Address { host: "h".to_owned(), port }
    }

    /// The master after these answers, one after the other: who said it, the port, the epoch.
    fn after(said: &[(usize, u16, i64)]) -> (u16, i64) {
        let (mut told, mut known) = (SentinelReplies::by(3), None);
        for (sentinel, port, epoch) in said {
            told.answer(*sentinel, address(*port), *epoch);
            known = told.master(known.as_ref().map(|(address, _)| address));
        }
        known.map(|(address, epoch)| (address.port, epoch)).unwrap()
    }

    #[test]
    fn a_sentinel_that_was_cut_off_does_not_bring_back_the_old_master() {
        assert_eq!(after(&[(0, 1, 3), (1, 2, 4), (0, 1, 3)]), (2, 4));
        assert_eq!(after(&[(0, 1, 3), (1, 2, 4), (0, 1, 3), (2, 2, 5)]), (2, 5));
    }

    #[test]
    fn of_one_epoch_most_of_them_are_right_and_nothing_flaps_where_they_are_even() {
        assert_eq!(after(&[(0, 1, 4), (1, 2, 4)]), (1, 4));
        assert_eq!(after(&[(0, 1, 4), (1, 2, 4), (2, 2, 4)]), (2, 4));
        assert_eq!(after(&[(0, 1, 4), (1, 2, 4), (2, 2, 4), (0, 1, 4)]), (2, 4));
        assert_eq!(after(&[(0, 1, 4), (0, 2, 4)]), (2, 4), "the same one announces another address");
    }

    #[test]
    fn sentinels_that_are_set_up_afresh_are_believed() {
        let before = [(0, 1, 7), (1, 1, 7), (2, 1, 7)];
        assert_eq!(after(&[&before[..], &[(0, 2, 0), (1, 2, 0)]].concat()), (1, 7));
        assert_eq!(after(&[&before[..], &[(0, 2, 0), (1, 2, 0), (2, 2, 0)]].concat()), (2, 0));
    }

    #[test]
    fn a_sentinel_that_is_gone_for_good_keeps_nobody_at_the_old_master() {
        let mut told = SentinelReplies::by(2);
        told.answer(0, address(1), 7);
        told.answer(1, address(2), 0);
        (1..GONE).for_each(|_| told.failure(0, silent()));
        assert_eq!(told.master(None), Some((address(1), 7)));
        told.failure(0, silent());
        assert_eq!(told.master(None), Some((address(2), 0)));
    }

    fn silent() -> Failure {
        Failure::Silent("timed out".to_owned())
    }

    #[test]
    fn a_refusal_is_told_until_its_sentinel_answers_whatever_fails_meanwhile() {
        let mut told = SentinelReplies::by(2);
        assert_eq!(told.why_not(), "none can be reached");
        told.failure(0, silent());
        assert_eq!(told.why_not(), "timed out");
        told.failure(0, Failure::Refused("wrong password".to_owned()));
        told.failure(0, silent());
        told.failure(1, silent());
        assert_eq!(told.why_not(), "wrong password");
        told.answer(0, address(1), 1);
        assert_eq!(told.why_not(), "timed out");
    }
}
