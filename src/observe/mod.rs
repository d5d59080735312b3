//! What can be seen from outside: the observer that hears every event, the logs, and the views that people and programs
//! read.

pub mod journal;
mod log;
#[cfg(feature = "daemon")]
mod log_queue;
#[cfg(feature = "daemon")]
pub mod logging;
mod notebook;
mod observer;
pub mod view;

pub use journal::Journal;
pub use log::{LogObserver, NodeLog};
pub use notebook::Notebook;
pub use observer::{FanOut, Observer};
