//! `cronward exec` and `cronward trigger`: one slot, guarded from the command line, with the daemon's own machine, keys,
//! ledger and attempts.
//!
//! ```text
//!  args ─▶ task: the job, its slot, its policy ─▶ nested? ─▶ run: drives the slot once ─▶ verdict: exit code and words ─▶ report
//! ```
//!
//! Where nothing goes wrong they write nothing of their own: cron mails every word.

mod args;
mod forward;
mod nested;
mod report;
mod run;
mod task;
mod trigger;
mod verdict;

pub(crate) use args::ExecArgs;
pub(crate) use run::exec;
pub(crate) use trigger::{TriggerArgs, trigger};
