//! From a cron expression to ticks, from ticks to slots, and which of them to arm next. Pure: time comes in.

mod closer;
mod dst;
mod expression;
mod lint;
mod pattern;
mod place;
mod plan;
mod planner;
mod remark;
mod search;
mod spread;
mod syntax;
mod timetable;
mod zone;

pub use closer::Closer;
pub use dst::{DstEffect, DstNote, clock_changes};
pub use expression::{Schedule, ScheduleError};
pub use plan::{Beat, Tick};
pub use planner::Planner;
pub use remark::Remark;
#[cfg(test)]
pub(crate) use syntax::compiled_here;
pub use timetable::Timetable;
