//! The operator's verbs: what changes a slot or a job in the store, from any node and with no daemon running.
//!
//! Each is one atomic step of the store and leaves its audit there: who, when, why, from which host. Each asks before it
//! changes anything, or takes `--yes`, and tells how it is undone. None of them runs a command; `trigger`, which does and is
//! asked and audited like them, is in `guarded`.

mod deed;
mod pauses;
mod slots;
#[cfg(test)]
mod tests;

pub(crate) use deed::{Deed, OperatorArgs};
pub(crate) use pauses::{PauseArgs, ResumeArgs, pause, resume};
pub(crate) use slots::{MarkDoneArgs, ResetArgs, UnlockArgs, mark_done, reset, unlock};
