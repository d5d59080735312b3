//! Decorators over any store. Each is a [`Layer`]: it is handed every operation as a call that it may make, bound,
//! measure, lose or repeat, and knows nothing of what the operation means. Nothing here repeats what may have been applied.
//!
//! - [`Timeout`] bounds every call.
//! - [`Observe`] tells an observer of every call.
//! - [`Chaos`] loses requests and replies, repeats and delays, from a seed or by a script.
//! - [`Rotation`] goes on with another password once the store refuses the old one.

mod chaos;
mod layered;
mod rotation;

pub use crate::store::contract::Reply;
pub use chaos::{Chaos, ChaosStore, Fault, Odds};
pub use layered::{Call, Layer, Layered, Observe, Observer, Seen, Timeout};
pub use rotation::{Credentials, Rotation};

#[cfg(test)]
mod tests;
