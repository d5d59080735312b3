//! Messages about what happened, each told once in the cluster and at least once at all.
//!
//! - [`NoticeEar`] hears the node's events; `lookout` (pure) says which are worth a message, and what has become of each job, with what the
//!   store knows of all nodes; `desk` (pure) says whom each is for.
//! - `machine` (pure) claims a message in the store, sends it, records that, and tries again; every node is the backup of the others.
//! - [`Notifier`] drives them; `letter` and `texts` write, `sinks` send.
//!
//! Nothing here holds up a run, and nothing is kept on a disk: what was begun stands in the store.

mod desk;
mod driver;
mod ear;
mod entry;
mod figures;
mod letter;
mod lookout;
mod machine;
mod notice;
mod pace;
mod sinks;
mod texts;
mod trial;

pub use driver::{Notifier, Receivers, Setup};
pub use ear::NoticeEar;
pub use figures::Figures;
pub use pace::LEASE;
pub(crate) use trial::{TestMessage, TestReceipt, send_test, use_ring};
