//! Clusters in virtual time: many nodes, one store, every fault, one seed.
//!
//! The nodes drive the very [`crate::guard::SlotMachine`], [`crate::schedule::Planner`] and [`crate::schedule::Closer`] of
//! the daemon; the store is [`crate::store::memory::Ledger`], the executable specification. What lies between them is
//! messages that are lost, late, doubled and overtaken; machines that stop, die and come back; stores that forget; clocks
//! that are wrong. One thread and one seed: whatever is found is found again.
//!
//! After every step the store's answer and what it keeps are compared with a second reading of `docs/PROTOCOL.md`, the
//! shadow. What truly happened is written down beside it, and judged when a slot is granted, when it is over, and at the end.
//! Where it is wanted, the nodes write the journals of real ones, and [`crate::verify`] judges those: what the world's own
//! judge calls clean has to be explained by them.
//!
//! ```text
//!  scenario ─▶ world ─▶ nature: time, chance, network, commands, history
//!               │   ├─▶ host, daemon, task: a node, as `crate::node` has it, without a runtime
//!               │   └─▶ backend: the ledger, and a shadow of every slot
//!               ├─▶ judge, idle, verdicts: what was promised
//!               └─▶ journals: what the nodes wrote, for `crate::verify`
//! ```
//!
//! Of the seeds from [`SHORT_FROM`] on, one world in three is of slots of one to five seconds, which are shorter than what
//! strikes them: a link that is cut, or carries requests and no answers, a node that stands still, a store that is away. Whether
//! it is one is drawn from a stream of its own, and no world of a smaller seed is: the seeds that were kept show the worlds that
//! they were kept for. CI has a range of its own for them, and of fresh seeds about all are large.
//!
//! What a node decides is shared: when a clock is put right and time has jumped ([`crate::clock`]), which verdicts are asked
//! for and told ([`crate::schedule::Closer`]), where a node goes on that comes after others ([`crate::store::handover`]).
//! What only passes messages on is copied from `crate::node`: a change of its `daemon`, `ticking`, `roll`, `presence` or
//! `crate::drive` has to be made in `daemon`, `presence`, `task` and `again` here.

mod again;
mod backend;
mod bug;
mod control;
mod daemon;
mod dice;
mod faults;
mod finding;
mod idle;
mod jobs;
mod journals;
mod judge;
mod message;
mod nature;
mod presence;
mod queue;
mod rules;
mod scenario;
mod serving;
mod shadow;
mod shrink;
mod story;
mod striking;
mod summary;
mod task;
mod time;
mod verdicts;
mod weather;
mod world;

pub use bug::Bug;
pub use control::{Control, JUDGED, control};
pub use faults::{Fault, FaultSet};
pub use finding::{Check, Finding};
pub use jobs::SHORT_FROM;
pub use journals::Judged;
pub use scenario::Limits;
pub use shrink::{Shrunk, shrink};
pub use summary::{Classes, Summary};
pub use world::{Options, Outcome, run};
