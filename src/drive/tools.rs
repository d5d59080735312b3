//! What every drive of a process shares.

use std::sync::Arc;

use crate::clock::Clock;
use crate::drive::{Facts, Gate};
use crate::observe::Observer;
use crate::store::Store;

/// What every drive of a process works with. Shared, not copied: 10,000 slots may wait.
#[derive(Debug)]
pub struct Tools {
    /// The shared store.
    pub store: Arc<dyn Store>,
    /// The node's clocks.
    pub clock: Arc<dyn Clock>,
    /// Hears of everything.
    pub observer: Arc<dyn Observer>,
    /// What was done here.
    pub facts: Facts,
    /// Where slots wait for their turn to be claimed.
    pub gate: Arc<Gate>,
}
