//! What the daemon serves on a port: whether it is well, its figures, and the HTTP interface.
//!
//! - `listener` accepts connections within bounds; `door` is what every request passes, whatever it asks for: its size, its host, its
//!   path, its time, the headers of the answer. `routes` is the one table of what there is and who may ask for it; `gate` says who asks.
//! - `pages` is the dashboard: HTML, from the board and, for one slot or job, from `reads`; `activity` what happened on this node lately.
//! - `health`, `figures` and `api` answer. What they show comes in through [`Exposition`], [`Listings`] and the node's health.
//! - Nothing here knows the command line, and no request reaches the store but through [`Listings`], once a second at the most.
//!
//! Why it has an accept loop of its own: docs/adr/0041.

mod activity;
mod api;
mod door;
mod exposition;
mod figures;
mod gate;
mod headers;
mod health;
mod hosts;
mod listener;
mod listings;
mod pages;
mod problem;
mod reads;
mod routes;
mod seats;
mod site;
#[cfg(test)]
mod tests;
mod throttle;
mod tokens;

pub use activity::Activity;
pub use exposition::Exposition;
pub use gate::Gate;
pub use listener::{Listening, listen};
pub use listings::{Away, Listings};
pub use site::{Site, Sources};
pub use tokens::{Mint, Tokens};
