//! How a trial ends that knows more than a panic says: its machine was too slow for it, so that it has neither passed nor failed;
//! or what it found counts, however slow the machine was.

use std::any::Any;
use std::panic::resume_unwind;

pub(crate) enum End {
    Inconclusive(String),
    Found(String),
}

/// Ends the trial: it is told as ignored, with the reason.
pub(crate) fn inconclusive(why: &str) -> ! {
    resume_unwind(Box::new(End::Inconclusive(format!("inconclusive: {why}"))))
}

/// Ends the trial: it has failed, and no machine excuses that.
pub(crate) fn found(what: String) -> ! {
    resume_unwind(Box::new(End::Found(what)))
}

/// How a trial ended that was not made to its end; none for one that panicked.
pub(crate) fn end(payload: &(dyn Any + Send)) -> Option<&End> {
    payload.downcast_ref()
}
