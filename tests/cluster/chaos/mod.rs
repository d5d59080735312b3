//! Chaos: a cluster of real daemons does thousands of short slots while it is struck by every fault that the protocol knows,
//! and `verify::check` judges what came of it. Nothing may be left unexplained.
//!
//! What is done is drawn from a seed before it begins ([`plan`]); which store it is done to is behind [`backend`].

mod arena;
mod backend;
mod book;
mod busy;
mod campaign;
mod controls;
mod due;
mod fault;
mod fleet;
mod folder;
mod judge;
mod links;
mod plan;
mod random;
mod record;
mod stores;
pub(crate) mod trials;
mod turn;
mod workload;
