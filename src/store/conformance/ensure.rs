//! Checks that answer with a message instead of a panic: library code never panics, not even this.

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
