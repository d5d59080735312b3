//! What a program reads of jobs and slots: the JSON of `--json` and of the HTTP interface. These fields are a promise:
//! fields are added, never renamed, removed or given another meaning, and each is always there (`null` when there is
//! nothing to say). Times are RFC 3339 in UTC, durations are seconds.

mod doctor;
mod job;
mod node;
mod slot;
mod why;

pub use doctor::DoctorView;
pub use job::{JobView, PauseView, TickView};
pub use node::{NodeState, NodeView};
pub use slot::{AuditView, DoneView, LeaseView, RunView, SlotView, VerdictView};
pub use why::{DecisionView, WhyView};
