//! Cron expressions, ticks and slots: against an oracle, against vectors, and as the planner hands them out.

mod host;
mod oracle;
mod planner;
mod slots;
mod vectors;
