//! Clusters in virtual time: many nodes, one store, every fault, one seed.
//!
//! The nodes drive the very [`cronward::machine::SlotMachine`], [`cronward::schedule::Planner`] and [`cronward::schedule::Closer`] of
//! the daemon; the store is [`cronward::store::memory::Ledger`], the executable specification. What lies between them is
//! messages that are lost, late, doubled and overtaken; machines that stop, die and come back; stores that forget; clocks
//! that are wrong. One thread and one seed: whatever is found is found again.
//!
//! After every step the store's answer and what it keeps are compared with a second reading of `docs/PROTOCOL.md`, the
//! shadow. What truly happened is written down beside it, and judged when a slot is granted, when it is over, and at the end.
//! Where it is wanted, the nodes write the journals of real ones, and [`cronward::verify`] judges those: what the world's own
//! judge calls clean has to be explained by them.
//!
//! ```text
//!  scenario ─▶ world ─▶ nature: the engine of time and chance, network, commands, history
//!               │   ├─▶ daemon, drives, task, requests, again: a node, as `cronward::node` has it, without a runtime
//!               │   └─▶ backend: the ledger, and a shadow of every slot
//!               ├─▶ checks, judge, laws, first_seen: what was promised
//!               ├─▶ lock_mix, lock_needs, locks, lock_laws: the locks that jobs name, what became of each request, and what was promised of them
//!               └─▶ journals, recorder: what the nodes wrote and the commands recorded, for `cronward::verify`
//! ```
//!
//! Of the seeds from [`SHORT_FROM`] on, one world in three is of slots of one to five seconds, which are shorter than what
//! strikes them: a link that is cut, or carries requests and no answers, a node that stands still, a store that is away. Whether
//! it is one is drawn from a stream of its own, and no world of a smaller seed is. CI has a range of its own for them, and of fresh
//! seeds about all are large. A seed is one history of one version of this code: where the order changes in which a world draws its
//! chances, its seeds are other worlds, and a seed that was kept shows another history than the one that it was kept for.
//!
//! Of the seeds from [`LOCKS_FROM`] on, half of the worlds have jobs that name locks, by a stream of their own again: one or two locks, each
//! exclusive, of readers and writers, or of two permits.
//!
//! Of the seeds from [`OUTPUTS_FROM`] on, the commands of half of the worlds write output, by a stream of their own too: the store refuses
//! some ends of runs as long as they are sent with the output, and does not answer others in time. Fresh seeds are drawn from there on.
//!
//! Of the seeds from [`ADDED_FROM`] on, a job is added to the files of half of the worlds while the others run.
//!
//! What a node decides is decided by the code that a real one runs: [`cronward::node`]'s machine and the machines of its slots. What
//! only passes messages on is written here by itself: a change of `drive::task` has to be made in `drives` and `task`, one of `drive::again` in `again`.
//! Of locks, what only passes messages on is in `locks` and `drives`, as `drive::locks` and `drive::task` have it.
//! Not simulated are the queue before the claim (`drive::admission`), jobs that are another node's, nodes of one name, purging, notes,
//! operators' resets, pauses and evictions, files that name other locks than before, and the last heartbeat of a node that leaves; and the end of a slot's drive reaches its node at once.

mod again;
mod backend;
mod checks;
mod daemon;
mod desk;
mod drives;
mod engine;
mod events;
mod faults;
mod first_seen;
mod history;
mod journals;
mod judge;
mod laws;
mod lock_laws;
mod lock_mix;
mod lock_needs;
mod locks;
mod message;
mod nature;
mod recorder;
mod requests;
mod scenario;
mod search;
mod shadow;
mod task;
mod weather;
mod world;

pub use checks::Bug;
pub use checks::{BrokenPromise, Check};
pub use faults::{Fault, FaultSet, OUTPUTS_FROM};
pub use history::{Classes, Summary};
pub use journals::Judged;
pub use lock_mix::LOCKS_FROM;
pub use scenario::{ADDED_FROM, Limits, SHORT_FROM, is_short};
pub use search::{Control, JUDGED, Shrunk, control, shrink};
pub use world::{Options, WorldOutcome, run};
