//! Stores that are broken on purpose, as real ones have been: the suite must catch each of them. They are the specification
//! with one [`Flaw`] each, so that what is caught is the flaw and nothing else.
//!
//! A suite that lets one of these pass proves nothing about the stores that it lets pass.

mod leases;
mod lost;
mod records;
mod store;

pub use store::{Broken, BrokenSetup, Control, Flaw};

/// Every flaw.
pub fn controls() -> Vec<Control> {
    [leases::controls(), lost::controls(), records::controls()].concat()
}

#[cfg(test)]
mod tests;
