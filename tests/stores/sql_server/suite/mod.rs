//! The cases that every database server has to pass, and the database that each of them gets.

use super::dialect;

mod access;
mod claims;
mod contention;
pub(crate) mod database;
mod figures;
pub(crate) mod locks;
mod outages;
#[cfg(feature = "daemon")]
mod rights;
mod rows;
mod shedlock;
mod tables;
