//! What the daemon serves on a port: whether it is well, its figures, and the HTTP interface.
//!
//! - `listener` accepts connections within bounds; `door` is what every request passes, whatever it asks for: its size, its host, its
//!   path, its time, the headers of the answer. `routes` is the one table of what there is and who may ask for it; `gate` says who asks.
//! - `pages` is the dashboard: HTML, from the board and, for one slot or job, from `reads`; `activity` what happened on this node lately.
//! - `tls` is the certificate that the port itself shows, where no proxy does.
//! - `health`, `figures` and `api` answer with what they are given: the node's health, [`Exposition`], the board. `stream` tells what
//!   changes. None of them asks the store.
//! - `slots` asks the store for what the board does not keep, through `reads`, a few at once; what was answered is kept for a second
//!   (`answers`). `openapi` describes the interface.
//! - `detail` is why a request was not answered as it wished, `problem` what such an answer looks like.
//! - `actions` takes what changes something, `operations` judges and does it, `refusal` says why not; `csrf` keeps pages of other sites
//!   from asking for it. `login` gives a cookie for a token, `session` is what that cookie is.
//! - Nothing here knows the command line.
//!
//! Why it has an accept loop of its own: docs/adr/0041.

#[cfg(test)]
mod acting_tests;
mod actions;
mod activity;
mod answers;
mod api;
mod asking;
mod bodies;
mod csrf;
mod described;
mod detail;
mod door;
mod examination;
mod exposition;
mod figures;
mod form;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod gate;
mod gzip;
mod headers;
mod health;
mod hosts;
mod listener;
mod login;
mod openapi;
mod operations;
mod pages;
mod parts;
mod pieces;
mod problem;
mod prospect;
mod reads;
mod refusal;
mod routes;
mod seats;
mod session;
mod site;
mod slots;
mod stream;
mod streams;
#[cfg(test)]
mod tests;
mod throttle;
mod tls;
mod tokens;

pub use activity::Activity;
pub use examination::Examination;
pub use exposition::Exposition;
pub use gate::Gate;
pub use listener::{Listening, listen};
pub use operations::{Operations, PlannedJobs};
pub use site::{Site, Sources};
pub use tls::{Certificate, client_of};
pub use tokens::{Mint, Tokens, TokensFault};
