//! The metrics of a node: their text and the page that tells of them, judged by Prometheus' own `promtool`; what real nodes show of
//! runs, takeovers and a store that is away; alerts and dashboard, whose expressions have to be about numbers that there are; and a real
//! Prometheus that scrapes and alerts. And the stream of events.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test says what it expects; real nodes are judged by the machine's clock"
)]

mod bench;
mod cost;
mod deployed;
mod node;
mod page;
mod promtool;
mod scraped;
mod streamed;
#[path = "../support/mod.rs"]
mod support;
mod text;
