//! Checks that answer with a message instead of a panic, and what a case comes to by them: library code never panics, not even
//! this.

use std::fmt;

use crate::store::StoreError;

/// What a case comes to.
pub type CaseOutcome = Result<(), Failure>;

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

/// The condition holds.
macro_rules! ensure {
    ($condition:expr $(, $($context:tt)+)?) => {
        if !$condition {
            let context: &[String] = &[$(format!($($context)+))?];
            return Err($crate::store::conformance::Failure::at(
                concat!(file!(), ":", line!()),
                format!("not so: {} {}", stringify!($condition), context.concat()),
            ));
        }
    };
}

/// Both are equal.
macro_rules! ensure_eq {
    ($left:expr, $right:expr $(, $($context:tt)+)?) => {{
        let (left, right) = (&$left, &$right);
        if left != right {
            let context: &[String] = &[$(format!($($context)+))?];
            return Err($crate::store::conformance::Failure::at(
                concat!(file!(), ":", line!()),
                format!("{} is {left:?}, expected {right:?} {}", stringify!($left), context.concat()),
            ));
        }
    }};
}

/// The value has this form; yields what the arrow says.
macro_rules! take {
    ($value:expr, $pattern:pat => $out:expr) => {
        match $value {
            $pattern => $out,
            #[allow(unreachable_patterns, reason = "a pattern may take in all there is")]
            other => {
                return Err($crate::store::conformance::Failure::at(
                    concat!(file!(), ":", line!()),
                    format!("{} is {other:?}, expected {}", stringify!($value), stringify!($pattern)),
                ))
            }
        }
    };
}

/// The value has this form.
macro_rules! ensure_is {
    ($value:expr, $pattern:pat) => {
        take!($value, $pattern => ())
    };
}
