//! `cronward run` at work: a node, what runs beside it, and what people and programs tell it.

mod heap;
#[cfg(feature = "notify")]
mod messages;
#[cfg(feature = "http")]
mod port;
mod reload;
mod service_manager;
mod services;
mod signals;
mod start;
mod surroundings;
mod zones;

pub(crate) use heap::keep_small;
#[cfg(feature = "http")]
pub(crate) use port::Serving;
pub(crate) use start::{Settings, start};
