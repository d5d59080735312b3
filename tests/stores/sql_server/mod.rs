//! The stores on database servers, on real ones: lost answers, deadlocks, restarts, missing grants, tables that are not there yet.
//! That they keep the contract is shown by the conformance suite.
//!
//! What is alike is in `suite`, which both take in: each case is one test for each dialect. What a dialect has of its own is
//! beside its `dialect.rs`, which has the SQL that the suite needs.

#[cfg(feature = "mysql")]
mod mariadb;
#[cfg(feature = "postgres")]
mod postgres;
