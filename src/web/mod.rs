//! What the daemon serves on a port: whether it is well, its figures, and the HTTP interface.
//!
//! - `listener` accepts connections within bounds; `door` is what every request passes, whatever it asks for: its size, its host, its
//!   path, its time, the headers of the answer. `routes` is the one table of what there is and who may ask for it; `gate` says who asks.
//! - `health`, `figures` and `api` answer with what they are given: the node's health, [`Exposition`], the board. `stream` tells what
//!   changes. None of them asks the store.
//! - `slots` asks the store for what the board does not keep, through `reads`, a few at once; what was answered is kept for a second
//!   (`answers`). `openapi` describes the interface.
//! - Nothing here knows the command line.
//!
//! Why it has an accept loop of its own: docs/adr/0041.

mod answers;
mod api;
mod door;
mod exposition;
mod figures;
mod gate;
mod gzip;
mod headers;
mod health;
mod hosts;
mod listener;
mod openapi;
mod problem;
mod reads;
mod routes;
mod seats;
mod site;
mod slots;
mod stream;
mod streams;
#[cfg(test)]
mod tests;
mod throttle;
mod tokens;

pub use exposition::Exposition;
pub use gate::Gate;
pub use listener::{Listening, listen};
pub use site::{Site, Sources};
pub use tokens::{Mint, Tokens};
