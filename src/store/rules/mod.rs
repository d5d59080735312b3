//! The rules of the contract, one file for each part of a slot's life. Each is one pure step on a [`SlotState`](super::state::SlotState): it sees what was
//! read at one moment, changes the state, and answers.
//!
//! Every store that does not decide by itself runs these and no others, the one in memory too: so what the model and the
//! simulator visit is what runs in all of these. Redis' scripts and the simulator's reference are written from the contract by
//! themselves, and are held against these.

mod change;
mod claim;
mod settle;
mod step;

pub(super) use change::{Change, MarkChange};
pub(super) use step::SlotStep;
