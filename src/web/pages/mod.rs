//! The dashboard's pages: HTML that the daemon renders, which works without a script, by keyboard alone and on a phone; and one stylesheet
//! and one script that are embedded. Why there is no build step: docs/adr/0047.
//!
//! - `ask` is one request: who asks, `reader` what they chose, `frame` what surrounds each page, `texts` every sentence.
//! - `views` and `details` answer: the first of the board alone, the others with one bounded look into the store.
//! - `forms` asks before something is changed, which `web::actions` does.
//! - `home`, `job`, `slot`, `cluster`, `plain` are the pages as values, which `src/web/templates` writes out. They read nothing.
//! - Nothing of a user's text reaches a page but escaped, and no page has a script or a style of its own.

mod assets;
mod chart;
mod cluster;
mod details;
mod forms;
mod frame;
mod home;
mod job;
mod listing;
mod moment;
mod needs;
mod now;
mod output;
#[cfg(test)]
mod palette;
mod plain;
mod reader;
mod request;
mod runs;
mod slot;
mod state;
#[cfg(test)]
mod tests;
mod texts;
mod views;

#[cfg(test)]
pub(super) use assets::stylesheet;
pub(super) use assets::{icon, serve as asset};
pub(super) use details::{examine, go, job, locks, run, slot, store};
pub(super) use forms::{Typed, again, of_job as job_form, of_slot as slot_form};
pub(super) use request::PageRequest;
#[cfg(test)]
pub(super) use tests::{is_chinese, snapshot as shown};
pub(super) use views::{activity, help, home, login, nodes};
