//! Chaos: a cluster of real daemons does thousands of short slots while it is struck by every fault that the protocol knows,
//! and `verify::check` judges what came of it. Nothing may be left unexplained.
//!
//! What is done is drawn from a seed before it begins ([`plan`]); which store it is done to is behind [`backend`].

mod arena;
mod backend;
mod book;
mod busy;
mod campaign;
mod contention;
mod controls;
mod due;
mod excuse;
mod fault;
mod fleet;
mod folder;
mod judge;
mod links;
mod lock_controls;
mod outsiders;
mod plan;
mod queues;
mod random;
mod record;
mod stores;
pub(crate) mod trials;
mod turn;
mod workload;
