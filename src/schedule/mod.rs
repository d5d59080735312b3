//! From a cron expression to ticks, from ticks to slots, and which of them to arm next. Pure: time comes in.

mod closer;
mod dst;
mod expression;
mod lint;
mod place;
mod plan;
mod planner;
mod search;
mod spread;
mod syntax;
mod timetable;
mod zone;

pub use closer::Closer;
pub use dst::{DstEffect, DstNote};
pub use expression::{Schedule, ScheduleError};
pub use planner::{Beat, Planner, Tick};
pub use timetable::Timetable;
