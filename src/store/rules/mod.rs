//! The rules of the contract, one file for each part of a slot's life, on an [`Image`](super::image::Image) of the slot.
//!
//! Each is one pure step: it sees what one transaction has read, changes the image, and answers. They are written from
//! the contract, apart from those of the memory store, and the conformance suite holds the two against each other.

mod claim;
mod close;
mod operate;
mod renew;
mod settle;
