//! A trial that could not be made: the machine was too slow for it. It has neither passed nor failed, and is told as ignored,
//! with the reason.

use std::any::Any;
use std::panic::resume_unwind;

struct Inconclusive(String);

/// Ends the trial.
pub(crate) fn inconclusive(why: &str) -> ! {
    resume_unwind(Box::new(Inconclusive(why.to_owned())))
}

/// Why a trial that ended so tells nothing; none for one that failed.
pub(crate) fn reason(end: &(dyn Any + Send)) -> Option<String> {
    end.downcast_ref::<Inconclusive>().map(|Inconclusive(why)| format!("inconclusive: {why}"))
}
