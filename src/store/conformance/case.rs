//! A case: a claim about every store, with the invariants that it checks, and how it is run.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use crate::store::StoreError;
use crate::store::conformance::{self as suite, Bench, Setup};

/// What a case comes to.
pub type Outcome = Result<(), Failure>;

type Run = for<'a> fn(&'a Bench) -> Pin<Box<dyn Future<Output = Outcome> + 'a>>;

/// Why a case failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    /// At this place in the suite, for this reason.
    pub(super) fn at(place: &str, reason: impl fmt::Display) -> Self {
        Self(format!("{place}: {reason}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self(reason)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self(format!("the store failed: {error} ({:?}, applied: {:?})", error.kind, error.applied))
    }
}

/// A claim about every store.
#[derive(Clone, Copy)]
pub struct Case {
    /// The claim, after its group: `claim::a_free_slot_is_granted`.
    pub name: &'static str,
    /// The invariants that it checks, as the protocol numbers them.
    pub invariants: &'static [&'static str],
    pub(super) run: Run,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.name, self.invariants)
    }
}

/// A case of the group from an `async fn(&Bench) -> Outcome` and its invariants.
macro_rules! case {
    ($group:literal, $run:ident $(, $invariant:ident)*) => {
        $crate::store::conformance::Case {
            name: concat!($group, "::", stringify!($run)),
            invariants: &[$(stringify!($invariant)),*],
            run: |bench| Box::pin($run(bench)),
        }
    };
}
pub(super) use case;

/// Every case, in the order in which one would want to read the first failure.
pub fn cases() -> impl Iterator<Item = Case> {
    [
        suite::claim::CASES,
        suite::lost::CASES,
        suite::renew::CASES,
        suite::settle::CASES,
        suite::attempts::CASES,
        suite::expiry::CASES,
        suite::window::CASES,
        suite::beside::CASES,
        suite::past::CASES,
        suite::close::CASES,
        suite::operator::CASES,
        suite::registry::CASES,
        suite::notes::CASES,
        suite::namespaces::CASES,
        suite::hostile::CASES,
        suite::idempotence::CASES,
        suite::wake::CASES,
        suite::races::CASES,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// Runs one case in a namespace of its own, which is wiped first. The message says where in the suite it failed. The
/// future is not `Send`: drive it with `Runtime::block_on`.
pub async fn run_case(setup: std::sync::Arc<dyn Setup>, case: &Case) -> Result<(), String> {
    let told = |failure: Failure| format!("{} {:?}: {failure}", case.name, case.invariants);
    let index = cases().position(|other| other.name == case.name).unwrap_or(usize::MAX);
    let bench = Bench::open(setup, &format!("case-{index}")).await.map_err(told)?;
    (case.run)(&bench).await.map_err(told)
}
