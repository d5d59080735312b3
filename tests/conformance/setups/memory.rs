//! The executable specification itself, in real time.

use std::sync::Arc;

use cronward::clock::SystemClock;
use cronward::store::conformance::{MemorySetup, Setup};

pub(super) async fn start() -> Result<Arc<dyn Setup>, String> {
    Ok(Arc::new(MemorySetup::new(Arc::new(SystemClock))))
}
