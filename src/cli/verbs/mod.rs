//! The operator's verbs: what changes a slot or a job in the store, from any node and with no daemon running.
//!
//! Each is one atomic step of the store and leaves its audit there: who, when, why, from which host. Each asks before it
//! changes anything, or takes `--yes`, and tells how it is undone. None of them runs a command; `trigger`, which does and is
//! asked and audited like them, is in `guarded`.

mod deed;
mod mark_done;
mod operator;
mod pause;
mod reset;
mod resume;
#[cfg(test)]
mod tests;
mod unlock;

pub(crate) use deed::Deed;
pub(crate) use mark_done::{Args as MarkDoneArgs, mark_done};
pub(crate) use operator::OperatorArgs;
pub(crate) use pause::{Args as PauseArgs, pause};
pub(crate) use reset::{Args as ResetArgs, reset};
pub(crate) use resume::{Args as ResumeArgs, resume};
pub(crate) use unlock::{Args as UnlockArgs, unlock};
