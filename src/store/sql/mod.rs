//! Stores in SQL databases.
//!
//! A database keeps rows and makes a transaction atomic; the rules are Rust, on an `image` of one slot. Each dialect
//! has its own connection, its own texts (`*.sql`, one operation each) and its own errors; images and rules are shared.
//!
//! | part | what it does |
//! |---|---|
//! | `image` | a slot as one transaction reads it, and what is to be written |
//! | `rules` | the contract's rules on an image: pure, one step each |
//! | `sqlite` | the file, the tables, the statements |

mod image;
mod rules;
mod sqlite;

pub use sqlite::SqliteStore;
