//! A case: a claim about every store, with the invariants that it checks, and how it is run.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use crate::store::conformance::{Bench, Outcome};

type Run = for<'a> fn(&'a Bench) -> Pin<Box<dyn Future<Output = Outcome> + 'a>>;

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
