//! `cronward exec` and `cronward trigger`: one slot, guarded from the command line, with the daemon's own machine, keys,
//! ledger and attempts. `cronward lock`: one command under locks.
//!
//! ```text
//!  args ─▶ task: the job, its slot, its policy ─▶ run: drives the slot once, or joins an outer run of it ─▶ verdict: exit code and words ─▶ report
//! ```
//!
//! Where nothing goes wrong `exec` writes nothing of its own: cron mails every word. `trigger` is an operator's verb: it asks,
//! leaves its audit in the store with the grant, and tells how far it can be taken back.

mod around;
mod forward;
mod lock;
mod repeated;
mod report_file;
mod run;
mod slot_arg;
mod task;
mod told;
mod trigger;
mod unfinished;
mod verdict;
mod waiting;

pub(crate) use lock::{LockArgs, lock};
pub(crate) use run::exec;
pub(crate) use task::ExecArgs;
pub(crate) use trigger::{TriggerArgs, trigger};
