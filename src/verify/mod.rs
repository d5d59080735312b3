//! Checks what happened: journals of the nodes in, a report out. No clock, no I/O, no judgement by anybody's word alone.
//!
//! - Every slot that had a tick is `once`, `repeat`, `overlap` or `lost` ([`Class`]). What is not `once` has to be
//!   *explained*: by a fault that was injected, or by what the nodes themselves told, under the rules of the protocol. A
//!   retry after a failure that was told is explained; two runs of which neither node said a word are not.
//! - Besides, what may never be is looked for: the rules are in `rules`, the bounds on recovery in `recovery`.
//! - Where a job records its own runs ([`Inputs::recorder`]), overlap is measured on that one clock; otherwise it is
//!   inferred from the nodes' clocks, each set right by the store's instants of its grants.
//!
//! ```
//! use cronward::verify::{Inputs, check};
//!
//! let mut inputs = Inputs::default();
//! inputs.journal("a.jsonl", "")?;
//! assert!(check(inputs).is_clean());
//! # Ok::<(), cronward::verify::Malformed>(())
//! ```

mod attempts;
mod availability;
mod explain;
mod first_seen;
mod history;
mod inputs;
mod judge;
mod lock_rules;
mod node_run;
mod recovery;
mod report;
mod rules;
mod run;
mod slot_locks;
mod story;

#[cfg(test)]
mod tests;

pub use inputs::{InjectedFault, Inputs, Malformed, RecordedRun};
pub use judge::check;
pub use report::{Class, Finding, Latency, Recovery, Report, Sample, Tally};
