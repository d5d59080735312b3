//! What stores of keys and values have in common: the frame of a call, and the hints. Each adapter
//! brings its few own steps (`Shelf`, `Registry`, `Notes`); this knows no server, keeps nothing and decides nothing about
//! slots: that is done by [`rules`](super::rules), on a [`state`](super::state).

mod call;
mod hints;
mod operations;
mod steps;

pub(super) use call::{Call, Frame, Trouble};
pub(super) use hints::{Hints, Teller};
pub(super) use steps::{Framed, Notes, Registry, Shelf};
