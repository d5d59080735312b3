//! From a cron expression to ticks, from ticks to slots, and which of them to arm next. Pure: time comes in.

mod backlog;
mod closer;
mod dialects;
mod expression;
mod fields;
mod lint;
mod pattern;
mod planner;
mod syntax;
mod timetable;
mod zone;

pub use closer::Closer;
pub use expression::{Schedule, ScheduleError};
pub use lint::{DstEffect, DstNote, Remark, clock_changes};
pub use planner::{Beat, Planner, Tick};
#[cfg(test)]
pub(crate) use syntax::compiled_here;
pub use timetable::Timetable;
