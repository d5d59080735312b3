//! Time zones. [`Zone`] is a name with its rules; [`Database`] reads them from the files of the host. No other module reads zone files.

mod database;
mod rules;
#[cfg(test)]
mod tests;

pub use database::{Database, Refresh, ZoneRelease, known_names};
pub use rules::{Zone, ZoneError};
