//! Cron expressions, ticks and slots: against an oracle, against vectors, and as the planner hands them out.

#![allow(missing_docs, reason = "a test says what it expects")]

mod oracle;
mod planner;
mod slots;
mod vectors;
