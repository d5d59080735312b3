//! What Prometheus reads of a node: its own registry of numbers, and their text (format 0.0.4).
//!
//! - [`Metrics`] is fed as an [`crate::observe::Observer`], and by [`Metrics::around`], which puts [`Observe`] around the store.
//! - [`Metrics::write`] streams the text: it reads no store, and keeps nothing of what it writes.
//! - [`Metrics::follow`] reads what the store alone knows, and only while somebody scrapes.
//! - [`FAMILIES`] is the table of what there is; `docs/metrics.md` is its contract.
//!
//! Its size is bounded by the jobs of the file: no label holds a slot, a node, an exit code or a message.

mod exposition;
mod family;
mod feed;
mod figures;
mod follow;
mod histogram;
mod jobs;
mod locks;
mod process;
mod registry;
mod render;
mod store;

pub use family::{FAMILIES, Family, FamilyKind};
pub use registry::{Metrics, Notifications, Setting, SinkFigures};
pub use store::Observe;
