//! Decorators over any store. Each is a [`Layer`]: it is handed every operation as a call that it may make, bound,
//! measure, lose or repeat, and knows nothing of what the operation means. Nothing here retries.
//!
//! - [`Timeout`] bounds every call.
//! - [`Observe`] tells an observer of every call.
//! - [`Chaos`] loses requests and replies, repeats and delays, from a seed or by a script.

mod chaos;
mod layered;
mod observe;
mod timeout;

pub use chaos::{Chaos, ChaosStore, Fault, Odds};
pub use layered::{Call, Layer, Layered, Reply};
pub use observe::{Observe, Observer, Seen};
pub use timeout::Timeout;

#[cfg(test)]
mod tests;
