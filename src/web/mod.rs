//! What the daemon serves on a port: whether it is well, its figures, and the HTTP interface.
//!
//! - `listener` accepts connections within bounds; `door` is what every request passes, whatever it asks for: its size, its host, its
//!   path, its time, the headers of the answer. `routes` is the one table of what there is and who may ask for it; `gate` says who asks.
//! - `health`, `figures` and `api` answer. What they show comes in through [`Exposition`], [`Listings`] and the node's health.
//! - `actions` takes what changes something, `operations` judges and does it, `refusal` says why not; `csrf` keeps pages of other sites
//!   from asking for it. `login` gives a cookie for a token, `session` is what that cookie is.
//! - Nothing here knows the command line, and no request of a viewer reaches the store but through [`Listings`], once a second at the most.
//!
//! Why it has an accept loop of its own: docs/adr/0041.

#[cfg(test)]
mod acting_tests;
mod actions;
mod api;
mod asking;
mod csrf;
mod door;
mod exposition;
mod figures;
mod form;
mod gate;
mod headers;
mod health;
mod hosts;
mod listener;
mod listings;
mod login;
mod look;
mod operations;
mod problem;
mod refusal;
mod routes;
mod seats;
mod session;
mod site;
#[cfg(test)]
mod tests;
mod throttle;
mod tokens;

pub use exposition::Exposition;
pub use gate::Gate;
pub use listener::{Listening, listen};
pub use listings::{Away, Listings};
pub use operations::{Operations, PlannedJobs};
pub use site::{Site, Sources};
pub use tokens::{Mint, Tokens};
