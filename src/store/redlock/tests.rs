//! What answers come to, one rule each. Every order of them is for `tests/protocol/model/redlock`.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::claim::{Found, Grant, Look, Own, Step, Terms};
use super::lease::{self, Ack, MasterRenewal, Outcome, Said};
use super::{Quorum, QuorumError, lasting, median, records};
use crate::job::NodeName;
use crate::reply::{Claim, ClaimRequest, Release, Renewal, Settlement};
use crate::slot::{Audit, DoneMark, Holder, Mark, Slot, SlotRecord, Token, Verdict, VerdictRecord};

const TTL: Duration = Duration::from_secs(60);
const OLD: Duration = Duration::from_secs(61);
const LEFT: Duration = Duration::from_secs(30);

fn slot() -> Slot {
    Slot::parse("a", "2026-11-21T14Z", "2026-11-21T15Z").unwrap()
}

fn minute(minute: i64) -> DateTime<Utc> {
    slot().start() + TimeDelta::minutes(minute)
}

fn request() -> ClaimRequest {
    ClaimRequest::new(slot(), Token::from_bits(5), NodeName::new("n5").unwrap(), TTL, 2)
}

fn by(token: u8, attempt: u32) -> Holder {
    Holder { node: NodeName::new(&format!("n{token}")).unwrap(), attempt }
}

fn look(found: Found) -> Option<Look> {
    Some(Look { age: OLD, longest: TTL, now: minute(10), counter: 0, forgiven: 0, latest: None, found })
}

fn knowing(counter: u32, forgiven: u32, found: Found) -> Option<Look> {
    look(found).map(|look| Look { counter, forgiven, ..look })
}

const fn free() -> Found {
    Found::Reserved { own: None }
}

fn held(token: u8, attempt: u32) -> Found {
    Found::Held { token: Token::from_bits(u128::from(token)), by: by(token, attempt), remaining: LEFT }
}

fn done() -> DoneMark {
    DoneMark { by: by(1, 1), at: minute(5), token: None }
}

fn step(looks: &[Option<Look>]) -> Step {
    let terms = Terms {
        quorum: Quorum::of(looks.len()).unwrap(),
        request: &request(),
        longest_lease: Duration::ZERO,
        done_is_stale: false,
    };
    terms.after_looks(looks)
}

fn granted(step: Step) -> (u32, u32) {
    match step {
        Step::Grant(Grant { attempt, used, .. }) => (attempt, used),
        other => panic!("{other:?} instead of a grant"),
    }
}

#[test]
fn a_majority_of_reservations_makes_a_number_and_a_minority_none() {
    assert_eq!(granted(step(&[look(free()), look(free()), None])), (1, 1));
    assert_eq!(step(&[look(free()), None, None]), Step::Unheard);
    assert!(matches!(step(&[look(free()), look(held(9, 1)), look(held(9, 1))]), Step::Answer(Claim::Held { .. })));
}

#[test]
fn whoever_knows_of_more_attempts_is_right_were_it_the_only_one() {
    assert_eq!(granted(step(&[look(free()), look(free()), knowing(1, 0, Found::Exhausted)])), (2, 2));
    assert_eq!(
        step(&[look(free()), look(free()), knowing(2, 0, Found::Exhausted)]),
        Step::Answer(Claim::Exhausted { used: 2 })
    );
    assert_eq!(granted(step(&[look(free()), knowing(2, 1, free()), knowing(2, 0, Found::Exhausted)])), (3, 2));
}

#[test]
fn a_master_counts_when_it_is_older_than_the_longest_lease() {
    let young = |age| look(free()).map(|look| Look { age, ..look });
    let seconds = Duration::from_secs;
    assert_eq!(step(&[look(free()), young(seconds(20)), None]), Step::Young { remaining: seconds(40) });
    assert_eq!(granted(step(&[look(free()), young(seconds(60)), None])), (1, 1));
    let request = request();
    let quorum = Quorum::of(3).unwrap();
    let terms = Terms { quorum, request: &request, longest_lease: seconds(300), done_is_stale: false };
    assert_eq!(terms.after_looks(&[look(free()), look(free()), None]), Step::Young { remaining: seconds(239) });
}

/// A file that was read again, or another node's, may have had a longer lease.
#[test]
fn a_master_that_forgot_a_longer_lease_than_is_asked_for_now_does_not_count_while_one_that_is_heard_knows_of_it() {
    let request = request();
    let terms = Terms {
        quorum: Quorum::of(3).unwrap(),
        request: &request,
        longest_lease: Duration::ZERO,
        done_is_stale: false,
    };
    let forgetful = || look(free()).map(|look| Look { age: TTL * 2, ..look });
    let ancient = |longest| look(free()).map(|look| Look { age: TTL * 1_000, longest, ..look });
    let step = |looks: &[Option<Look>]| terms.having_heard(looks).after_looks(looks);
    assert_eq!(granted(step(&[forgetful(), ancient(TTL), None])), (1, 1));
    assert_eq!(step(&[forgetful(), ancient(TTL * 10), None]), Step::Young { remaining: TTL * 8 });
    assert_eq!(granted(step(&[forgetful(), ancient(TTL * 10), ancient(TTL)])), (1, 1), "two have forgotten nothing");
    let lease = request.granted(1, minute(1));
    let said = |age, longest| Some(MasterRenewal { age, longest, said: Renewal::Renewed });
    let renewed = |longest| {
        let answers = [said(TTL * 2, TTL), said(TTL * 1_000, longest), None];
        lease::renewal(Quorum::of(3).unwrap(), &lease, Duration::ZERO, &answers)
    };
    assert_eq!((renewed(TTL), renewed(TTL * 10)), (Some(Renewal::Renewed), None));
}

#[test]
fn one_done_marker_stops_a_claim_unless_it_was_reset() {
    let marked = || look(Found::Done(done()));
    assert_eq!(step(&[marked(), marked(), marked()]), Step::Answer(Claim::Done(done())));
    assert_eq!(step(&[look(free()), look(free()), marked()]), Step::ReadAll);
    assert_eq!(step(&[None, None, marked()]), Step::ReadAll);
    let request = request();
    let quorum = Quorum::of(3).unwrap();
    let terms = Terms { quorum, request: &request, longest_lease: Duration::ZERO, done_is_stale: true };
    assert_eq!(granted(terms.after_looks(&[look(free()), look(free()), marked()])), (1, 1));
}

#[test]
fn the_window_is_judged_by_the_clock_in_the_middle() {
    let at = |minutes: i64, found| look(found).map(|look| Look { now: minute(minutes), ..look });
    assert_eq!(granted(step(&[at(10, free()), at(10, free()), at(70, Found::Closed)])), (1, 1));
    assert_eq!(step(&[at(10, free()), at(61, Found::Closed), at(70, Found::Closed)]), Step::Answer(Claim::Closed));
    let early = Step::Answer(Claim::Early { remaining: Duration::from_secs(120) });
    assert_eq!(step(&[at(-2, Found::Early), at(-2, Found::Early), at(10, free())]), early);
}

#[test]
fn no_grant_is_earlier_than_the_one_before_it_whichever_clocks_timed_that() {
    let at = |looks: &[Option<Look>]| match step(looks) {
        Step::Grant(grant) => grant.at,
        other => panic!("{other:?}"),
    };
    let knows = |minutes| look(free()).map(|look| Look { latest: Some(minute(minutes)), ..look });
    assert_eq!(at(&[look(free()), knows(8), look(free())]), minute(10));
    assert_eq!(at(&[look(free()), knows(12), look(free())]), minute(12));
}

#[test]
fn of_those_who_have_no_majority_the_smallest_token_goes_on() {
    assert!(matches!(step(&[look(free()), look(held(7, 0)), look(held(9, 0))]), Step::Again(_)));
    let yields = step(&[look(free()), look(held(2, 0)), look(held(9, 0))]);
    assert_eq!(yields, Step::Answer(Claim::Held { by: by(2, 0), remaining: LEFT }));
    // Whoever has a number, or a majority of reservations, is not contested.
    assert!(matches!(step(&[look(free()), look(free()), look(held(9, 1))]), Step::Grant(_)));
    assert!(matches!(step(&[look(free()), None, look(held(9, 1))]), Step::Answer(Claim::Held { .. })));
    assert!(matches!(step(&[look(free()), look(held(9, 0)), look(held(9, 0))]), Step::Answer(Claim::Held { .. })));
}

/// A majority had it, and one of that lost its data: there the claim got the same number, and so a majority of its own.
#[test]
fn a_number_that_another_claim_has_is_not_had_again() {
    let own = Found::Reserved { own: Some(Own { attempt: 1, at: minute(3) }) };
    let next = step(&[knowing(1, 0, free()), knowing(1, 0, own.clone()), knowing(1, 0, own)]);
    assert!(matches!(next, Step::Unfinished(Grant { attempt: 2, .. })), "{next:?}");
}

#[test]
fn the_same_claim_again_is_the_same_number_where_a_majority_has_it() {
    let own = |attempt| Found::Reserved { own: Some(Own { attempt, at: minute(3) }) };
    let again = step(&[knowing(1, 0, own(1)), knowing(1, 0, own(1)), look(free())]);
    assert_eq!(again, Step::Grant(Grant { attempt: 1, used: 1, at: minute(3), forgiven: 0, again: true }));
    // It may have been taken back, and what takes it back may still be on its way.
    let next = step(&[knowing(1, 0, own(1)), look(free()), look(free())]);
    assert!(matches!(next, Step::Unfinished(Grant { attempt: 2, .. })), "{next:?}");
}

#[test]
fn the_first_reason_in_the_order_of_the_contract_is_told() {
    let paused = || look(Found::Paused { remaining: None });
    let waits = |left| look(Found::Backoff { remaining: Duration::from_secs(left) });
    assert_eq!(step(&[paused(), paused(), look(free())]), Step::Answer(Claim::Paused { remaining: None }));
    let wait = Step::Answer(Claim::Backoff { remaining: Duration::from_secs(7) });
    assert_eq!(step(&[waits(9), paused(), waits(7)]), wait, "until a majority is past it");
    let spent = Step::Answer(Claim::Backoff { remaining: Duration::ZERO });
    assert_eq!(step(&[look(Found::Spent), paused(), look(free())]), spent);
}

fn outcome(acks: &[Option<Ack>], spent: Duration) -> Outcome {
    let terms = Terms {
        quorum: Quorum::of(acks.len()).unwrap(),
        request: &request(),
        longest_lease: Duration::ZERO,
        done_is_stale: false,
    };
    terms.after_grants(&Grant { attempt: 1, used: 1, at: minute(10), forgiven: 0, again: false }, acks, spent)
}

fn ack(said: Said) -> Option<Ack> {
    Some(Ack { age: OLD, said })
}

fn yes() -> Option<Ack> {
    ack(Said::Granted { at: minute(10) })
}

#[test]
fn a_lease_is_what_a_majority_acknowledged_within_its_validity() {
    let second = Duration::from_secs(1);
    assert!(matches!(outcome(&[yes(), yes(), None], second), Outcome::Claimed(_)));
    assert_eq!(outcome(&[yes(), None, None], second), Outcome::Unknown);
    assert_eq!(outcome(&[yes(), yes(), yes()], TTL), Outcome::Unknown);
    assert_eq!(outcome(&[yes(), yes(), yes()], Duration::from_millis(59_400)), Outcome::Unknown, "less the drift");
    let young = Some(Ack { age: second, said: Said::Granted { at: minute(10) } });
    assert_eq!(outcome(&[yes(), young, None], second), Outcome::Unknown);
}

#[test]
fn a_number_is_taken_back_only_when_no_majority_can_have_it() {
    let no = || ack(Said::Held { by: by(9, 1), remaining: LEFT });
    assert_eq!(outcome(&[yes(), no(), None], LEFT), Outcome::Unknown);
    let void = Outcome::Void(Some(Claim::Held { by: by(9, 1), remaining: LEFT }));
    assert_eq!(outcome(&[yes(), no(), no()], LEFT), void);
    assert_eq!(outcome(&[yes(), ack(Said::Taken), ack(Said::Taken)], LEFT), Outcome::Void(None));
    assert_eq!(outcome(&[yes(), yes(), ack(Said::Done(done()))], LEFT), Outcome::ReadAll);
}

#[test]
fn a_renewal_is_a_majority_of_old_masters_and_a_minority_is_no_knowledge() {
    let lease = request().granted(1, minute(1));
    let said = |said: Renewal| Some(MasterRenewal { age: OLD, longest: TTL, said });
    let young = |said: Renewal| Some(MasterRenewal { age: Duration::ZERO, longest: TTL, said });
    let of =
        |answers: &[Option<MasterRenewal>]| lease::renewal(Quorum::of(3).unwrap(), &lease, Duration::ZERO, answers);
    let lost = |attempt| Renewal::Lost { to: Some(by(9, attempt)) };
    assert_eq!(of(&[said(Renewal::Renewed), said(Renewal::Renewed), said(lost(0))]), Some(Renewal::Renewed));
    assert_eq!(of(&[said(Renewal::Renewed), said(Renewal::Restored), None]), Some(Renewal::Restored));
    assert_eq!(of(&[said(Renewal::Renewed), young(Renewal::Restored), None]), None);
    assert_eq!(
        of(&[said(Renewal::Renewed), young(Renewal::Renewed), None]),
        None,
        "what it has set again proves nothing"
    );
    assert_eq!(of(&[said(Renewal::Restored), said(Renewal::Restored), said(lost(2))]), None);
    assert_eq!(of(&[said(Renewal::Restored), said(lost(2)), said(lost(2))]), Some(lost(2)));
    assert_eq!(of(&[said(Renewal::Restored), None, said(Renewal::Done(done()))]), Some(Renewal::Done(done())));
    assert_eq!(of(&[said(Renewal::Renewed), None, None]), None);
}

#[test]
fn a_claim_that_came_to_nothing_has_overtaken_nobody() {
    let quorum = Quorum::of(3).unwrap();
    let other = || Settlement::Overtaken { by: by(9, 2) };
    assert_eq!(
        lease::settlement(quorum, &[Some(Settlement::Recorded), Some(other()), Some(Settlement::Recorded)]),
        Some(Settlement::Recorded)
    );
    assert_eq!(lease::settlement(quorum, &[Some(Settlement::Recorded), Some(other()), None]), Some(other()));
    assert_eq!(lease::settlement(quorum, &[Some(Settlement::Recorded), None, None]), None);
    let (free, gone) = (Some(Release::Released), Some(Release::Expired));
    assert_eq!(lease::release(quorum, &[free.clone(), gone.clone(), gone.clone()]), Some(Release::Expired));
    assert_eq!(lease::release(quorum, &[free, gone, None]), Some(Release::Released));
}

fn known(mark: Mark) -> Option<SlotRecord> {
    Some(SlotRecord { mark, ..SlotRecord::untouched(slot()) })
}

fn leased(token: u8) -> Mark {
    Mark::Leased { by: by(token, 1), token: Token::from_bits(u128::from(token)), remaining: LEFT }
}

#[test]
fn a_lease_that_no_majority_can_have_is_none() {
    let merged =
        |records: &[Option<SlotRecord>]| records::merge(Quorum::of(3).unwrap(), records).map(|record| record.mark);
    assert_eq!(merged(&[known(leased(1)), known(leased(1)), known(Mark::Free)]), Some(leased(1)));
    assert_eq!(merged(&[known(leased(1)), known(Mark::Free), None]), Some(leased(1)), "the third may have it");
    assert_eq!(merged(&[known(leased(1)), known(Mark::Free), known(Mark::Free)]), Some(Mark::Free));
    assert_eq!(merged(&[known(leased(1)), None, None]), None);
}

#[test]
fn what_a_master_has_from_before_a_reset_that_it_missed_does_not_count() {
    let reset = |at| Audit { verb: "reset".into(), who: "w".into(), host: "h".into(), why: String::new(), at };
    let verdict = VerdictRecord { verdict: Verdict::Done, by: by(1, 1).node, at: minute(5), attempt: 1 };
    let missed = known(Mark::Done(done())).map(|record| SlotRecord { verdict: Some(verdict), ..record });
    let told = |minutes| known(Mark::Free).map(|record| SlotRecord { audit: vec![reset(minute(minutes))], ..record });
    let merged =
        |minutes| records::merge(Quorum::of(3).unwrap(), &[missed.clone(), told(minutes), told(minutes)]).unwrap();
    assert_eq!((merged(6).mark, merged(6).verdict), (Mark::Free, None));
    assert_eq!(merged(4).mark, Mark::Done(done()), "done after the reset");
}

#[test]
fn a_grant_of_this_very_claim_is_told_after_the_slots_end_and_nothing_new_is_granted() {
    let late = |found| look(found).map(|look| Look { now: minute(70), counter: 1, ..look });
    let own = || Found::Reserved { own: Some(Own { attempt: 1, at: minute(3) }) };
    let forgot = late(Found::Closed).map(|look| Look { counter: 0, ..look });
    match step(&[late(own()), late(own()), forgot]) {
        Step::Grant(grant) => assert!(grant.again && grant.attempt == 1, "{grant:?}"),
        other => panic!("{other:?} instead of the grant"),
    }
    assert_eq!(step(&[late(own()), late(Found::Closed), late(Found::Closed)]), Step::Answer(Claim::Closed));
    let another = late(own()).map(|look| Look { counter: 2, ..look });
    assert_eq!(step(&[late(own()), late(own()), another]), Step::Answer(Claim::Closed));
}

#[test]
fn of_two_slots_of_a_job_that_contend_the_smaller_token_goes_first() {
    let key = "2026-11-21T13Z".parse().unwrap();
    let beside = |token: u8, attempt| {
        let by = by(token, attempt);
        look(Found::Blocked { key, token: Token::from_bits(u128::from(token)), by, remaining: LEFT })
    };
    let own = request().token;
    assert!(own > Token::from_bits(1) && own < Token::from_bits(255), "{own}");
    let blocked = |step| matches!(step, Step::Answer(Claim::Blocked { key: by, .. }) if by == key);
    assert!(matches!(step(&[look(free()), beside(255, 0), None]), Step::Again(Claim::Blocked { .. })));
    assert!(blocked(step(&[look(free()), beside(1, 0), None])));
    assert!(blocked(step(&[look(free()), beside(255, 1), None])), "it has a number");
    assert!(blocked(step(&[look(free()), beside(255, 0), beside(255, 0)])), "it has a majority");
}

#[test]
fn one_two_or_an_even_number_of_masters_is_refused_with_a_way_out() {
    assert!(Quorum::of(1).unwrap_err().to_string().contains("redis://"));
    assert_eq!(Quorum::of(2), Err(QuorumError::TooFew(2)));
    assert!(Quorum::of(4).unwrap_err().to_string().contains("leave one out"));
    assert_eq!(Quorum::of(17), Err(QuorumError::TooMany(17)));
    assert_eq!([3, 5, 7].map(|masters| Quorum::of(masters).unwrap().majority()), [2, 3, 4]);
}

#[test]
fn a_minority_does_not_move_the_median() {
    assert_eq!(median([1, 2, 1_000]), Some(2));
    assert_eq!(median([0, 5, 6, 7, 1_000]), Some(6));
    assert_eq!(median([5, 7]), Some(5));
    assert_eq!(median(Vec::<u8>::new()), None);
}

#[test]
fn what_could_be_true_of_a_majority_is_not_taken_for_false() {
    let five = Quorum::of(5).unwrap();
    assert!(five.may_hold(1, 3));
    assert!(!five.may_hold(1, 4));
    assert!(five.may_hold(3, 5));
    assert!(!five.may_hold(2, 5));
}

#[test]
fn a_lease_lasts_for_as_long_as_a_majority_has_it() {
    let three = Quorum::of(3).unwrap();
    let left = |seconds: &[u64]| lasting(three, seconds.iter().copied().map(Duration::from_secs).collect()).as_secs();
    assert_eq!(left(&[9, 1, 5]), 5);
    assert_eq!(left(&[9, 1]), 1);
    assert_eq!(left(&[9]), 9);
    assert_eq!(left(&[]), 0);
}
