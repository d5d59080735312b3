//! `cronward import`: what other schedulers have, as `jobs.toml`. Reads files and writes text; opens no store, changes
//! nothing, and leaves nothing out in silence: what has no counterpart becomes a comment that names its file and line.

mod accounts;
mod args;
mod document;
mod entry;
mod fields;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod item;
mod line;
mod name;
mod quote;
mod shell;
mod table;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use args::{Args, import};
