//! `jobs.toml`: found, read, checked, and turned into jobs with every default filled in.
//!
//! - [`find`] and [`load`] deal with the file; [`parse`] is pure: what it may know comes in as an [`Environment`].
//! - [`load`] says whether a file can be used, [`load_job`] whether one job of it can; [`lint_file`] also says what may not be
//!   meant, which no command but `check` and the start of a daemon waits for.
//! - Everything that is wrong is reported at once, each finding with its place and a way out: see [`Report`].
//! - Nothing here starts a command, opens a store or prints.

mod command;
mod conflicts;
mod context;
mod diagnostic;
mod document;
mod duration;
mod environment;
mod file;
mod interpolate;
mod jobs;
mod json;
mod limits;
mod lints;
mod model;
mod nearest;
mod parse;
mod policy;
mod reader;
mod render;
mod secrets;
mod sections;
mod settings;
mod store_url;
mod value;

pub use diagnostic::{Diagnostic, Report, Severity};
pub use duration::{DurationError, format_duration, parse_duration};
pub use environment::Environment;
pub use file::{LoadError, NotFound, find, lint_file, load, load_job};
pub use json::Finding;
pub use model::{Config, HttpConfig, NodeConfig, StoreConfig};
pub(crate) use nearest::nearest_zone;
pub use parse::{lint, parse, parse_job};
pub use store_url::read_url_file;
