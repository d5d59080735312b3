//! Random sequences of operations by proptest, shrunk to the shortest that shows a difference. `PROPTEST_CASES` and
//! `PROPTEST_RNG_SEED` work as usual; without a seed it is a fixed one, so that a failure can be seen again.

use std::cell::Cell;
use std::sync::Arc;

use crate::broken::{BrokenLocks, BrokenSetup, controls, lock_controls};
use cronward::clock::SystemClock;
use cronward::store::conformance::sequence::{Step, agree as agree_on};
use cronward::store::conformance::{LockMove, Setup, agree_on_locks};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, RngSeed, TestCaseError, TestError, TestRunner};
use tokio::runtime::Runtime;

/// Steps of a sequence: long enough for every attempt of a slot to be used, short enough to be read.
const STEPS: std::ops::Range<usize> = 1..40;

/// Operations of a sequence, taken over many of them: its other steps disturb the store, or find nobody who could ask.
const OPERATIONS: u64 = 12;

/// Moves of a sequence about locks on average: half of [`STEPS`].
const MOVES: u32 = 20;

/// Moves about locks at most: of the two locks of a sequence there is less to know than of a slot.
const MOST_MOVES: u32 = 5_000;

fn step() -> impl Strategy<Value = Step> {
    let (actor, place) = (0_u8..3, 0_u8..5);
    // Two places are outside their window: most steps are about the others.
    let near = || prop_oneof![8 => 0_u8..2, 2 => 2_u8..3, 1 => 3_u8..5];
    prop_oneof![
        12 => (actor.clone(), near(), any::<bool>()).prop_map(|(actor, place, again)| Step::Claim(actor, place, again)),
        6 => (actor.clone(), any::<bool>()).prop_map(|(actor, longer)| Step::Renew(actor, longer)),
        4 => actor.clone().prop_map(Step::Complete),
        6 => (actor.clone(), any::<bool>()).prop_map(|(actor, waits)| Step::Fail(actor, waits)),
        4 => actor.prop_map(Step::GiveBack),
        5 => Just(Step::Again),
        3 => (place.clone(), 0_u8..4).prop_map(|(place, limit)| Step::Close(place, limit)),
        3 => near().prop_map(Step::Reset),
        2 => near().prop_map(Step::Unlock),
        2 => place.clone().prop_map(Step::MarkDone),
        1 => (place.clone(), any::<bool>()).prop_map(|(place, ends)| Step::Pause(place, ends)),
        2 => place.prop_map(Step::Resume),
        8 => near().prop_map(Step::Expire),
        2 => near().prop_map(Step::ForgetCounter),
        1 => Just(Step::Wipe),
    ]
}

/// The shortest sequence found that a setup answers otherwise than the specification, if any is found; otherwise how many
/// operations were compared.
fn difference(setup: &Arc<dyn Setup>, runtime: &Runtime, config: Config) -> Result<u64, String> {
    let mut runner = TestRunner::new(config);
    let compared = Cell::new(0);
    let outcome = runner.run(&proptest::collection::vec(step(), STEPS), |steps| {
        let agreed = runtime.block_on(agree_on(Arc::clone(setup), "sequence", &steps));
        compared.set(compared.get() + u64::from(agreed.map_err(TestCaseError::fail)?));
        Ok(())
    });
    outcome.map(|()| compared.get()).map_err(|error| match error {
        TestError::Fail(reason, steps) => format!("{reason}\nthe shortest sequence that shows it: {steps:#?}"),
        TestError::Abort(reason) => reason.to_string(),
    })
}

fn config() -> Config {
    let mut config = Config { failure_persistence: None, rng_algorithm: RngAlgorithm::ChaCha, ..Config::default() };
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(20_261_121);
    }
    config
}

/// A setup answers every sequence as the specification does: as many operations as its scale asks for, or as many sequences as
/// `PROPTEST_CASES` does.
pub(crate) fn agree(setup: Arc<dyn Setup>, runtime: &Runtime) -> Result<(), String> {
    let mut config = config();
    if std::env::var_os("PROPTEST_CASES").is_some() {
        let compared = difference(&setup, runtime, config)?;
        println!("{compared} operations were answered as specified");
        return Ok(());
    }
    let mut left = u64::from(setup.scale().operations);
    while left > 0 {
        config.cases = u32::try_from(left.div_ceil(OPERATIONS)).unwrap_or(u32::MAX);
        left = left.saturating_sub(difference(&setup, runtime, config.clone())?);
        // Where that was not enough, as it is of a few sequences now and then, others follow.
        if let RngSeed::Fixed(seed) = &mut config.rng_seed {
            *seed = seed.wrapping_add(1);
        }
    }
    Ok(())
}

/// Flaws that no sequence shows: in a sequence no time passes, nobody else is there, hints are not heard, nothing is
/// noted, no job registered and no message told.
const UNSEEN: [&str; 15] = [
    "APageTakesThePlaceOfAll",
    "ClaimLooksFirst",
    "ClaimRepeatsItsLength",
    "ClaimsForEver",
    "ClosedBeforeItsOwnToken",
    "DoneIsRenewed",
    "EverybodySends",
    "NothingIsGivenUp",
    "OneNamespace",
    "OnlyTheStoreSeesJobs",
    "RetriesAtOnce",
    "Silent",
    "TheLastWordOnAJobCounts",
    "TokensAreNotKnownAgain",
    "ToldIsForgotten",
];

/// The sequences find each of the broken stores: a generator that never makes the step that matters proves nothing.
pub(crate) fn find_every_flaw(runtime: &Runtime) -> Result<(), String> {
    let mut escaped = Vec::new();
    for control in controls() {
        let name = format!("{:?}", control.flaw);
        let setup: Arc<dyn Setup> = Arc::new(BrokenSetup::new(control.flaw, Arc::new(SystemClock)));
        // Enough for each that can be seen; of the others a few, so that a claim that they cannot be is tried all the same.
        let cases = if UNSEEN.contains(&name.as_str()) { 200 } else { 1500 };
        let config = Config { cases, max_shrink_iters: 0, ..config() };
        if difference(&setup, runtime, config).is_ok() {
            escaped.push(name);
        }
    }
    escaped.sort();
    if escaped == UNSEEN { Ok(()) } else { Err(format!("no sequence shows {escaped:?}, expected {UNSEEN:?}")) }
}

fn lock_move() -> impl Strategy<Value = LockMove> {
    let client = || 0_u8..5;
    prop_oneof![
        14 => (client(), 0_u8..8, prop::bool::weighted(0.8)).prop_map(|(who, what, waits)| LockMove::Ask(who, what, waits)),
        5 => client().prop_map(LockMove::Renew),
        7 => (client(), any::<bool>()).prop_map(|(who, copy)| LockMove::Leave(who, copy)),
        2 => client().prop_map(LockMove::Late),
        4 => client().prop_map(LockMove::Lapse),
        1 => (0_u8..2).prop_map(LockMove::Forget),
        1 => client().prop_map(LockMove::Evict),
    ]
}

/// The shortest sequence found that a setup answers otherwise than the rules of locks do, if any is found.
fn difference_about_locks(setup: impl Fn() -> Arc<dyn Setup>, runtime: &Runtime, config: Config) -> Result<(), String> {
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&proptest::collection::vec(lock_move(), STEPS), |moves| {
        let agreed = runtime.block_on(agree_on_locks(setup(), "lock-sequence", &moves));
        agreed.map(drop).map_err(TestCaseError::fail)
    });
    outcome.map_err(|error| match error {
        TestError::Fail(reason, moves) => format!("{reason}\nthe shortest sequence that shows it: {moves:#?}"),
        TestError::Abort(reason) => reason.to_string(),
    })
}

/// A setup that keeps locks answers every sequence as the rules do.
pub(crate) fn agree_about_locks(setup: Arc<dyn Setup>, runtime: &Runtime) -> Result<(), String> {
    let mut config = config();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = setup.scale().operations.min(MOST_MOVES).div_ceil(MOVES);
    }
    difference_about_locks(|| Arc::clone(&setup), runtime, config)
}

/// Flaws of locks that no sequence shows: in a sequence no time passes, nobody else's namespace is there, no request names more than two locks,
/// no queue is full, nobody leaves twice, the list of all locks is not read, and what an operator did is not.
const UNSEEN_OF_LOCKS: [&str; 7] = [
    "AuditIsDatedByWhoAsks",
    "FourLocksAtMost",
    "ListsTheLastFirst",
    "OneNamespace",
    "OneTtlForAll",
    "ReleaseTellsOnce",
    "Unbounded",
];

/// The sequences about locks find each of the stores whose locks are broken.
pub(crate) fn find_every_flaw_of_locks(runtime: &Runtime) -> Result<(), String> {
    let mut escaped = Vec::new();
    for control in lock_controls() {
        let name = control.name();
        // A new one for each sequence, whose tokens are the same: what a flaw remembers is of that sequence alone.
        let setup = || -> Arc<dyn Setup> { Arc::new(BrokenLocks::new((control.flaw)(), Arc::new(SystemClock))) };
        let cases = if UNSEEN_OF_LOCKS.contains(&name.as_str()) { 50 } else { 500 };
        if difference_about_locks(setup, runtime, Config { cases, max_shrink_iters: 0, ..config() }).is_ok() {
            escaped.push(name);
        }
    }
    escaped.sort();
    if escaped == UNSEEN_OF_LOCKS {
        Ok(())
    } else {
        Err(format!("no sequence shows {escaped:?}, expected {UNSEEN_OF_LOCKS:?}"))
    }
}
