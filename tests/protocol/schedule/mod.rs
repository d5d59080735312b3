//! Cron expressions, ticks and slots: against an oracle, against vectors, and as the planner hands them out.

mod oracle;
mod planner;
mod slots;
mod vectors;
