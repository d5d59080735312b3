//! `jobs.toml`: found, read, checked, and turned into jobs with every default filled in.
//!
//! - [`find`] and [`load`] deal with the file; [`parse()`] is pure: what it may know comes in as an [`Environment`].
//! - [`load`] says whether a file can be used, [`load_job`] whether one job of it can; [`lint_file`] also says what may not be
//!   meant, which no command but `check` and the start of a daemon waits for.
//! - Everything that is wrong is reported at once, each finding with its place and a way out: see [`Diagnostics`].
//! - Nothing here starts a command, opens a store or prints.

mod command;
mod context;
mod diagnostic;
mod draft;
mod file;
mod host;
mod http;
mod http_section;
mod jobs;
mod limits;
mod lock_lints;
mod lock_timetable;
mod locks;
mod model;
mod network;
mod notation;
mod parse;
mod reader;
mod secrets;
mod sections;
mod settings;
mod sink;
mod sink_section;
mod value;

pub(crate) use command::LONGEST_WORD;
pub use context::Environment;
pub use diagnostic::{Diagnostic, Diagnostics, JsonFinding, Severity};
pub use file::{LoadError, NotFound, find, lint_file, load, load_job};
#[cfg(feature = "http")]
pub(crate) use http::listen_hint;
pub use http::{HttpConfig, Objection, ProxyConfig, Role, RoleSource, TlsFiles, parse_listen};
pub use model::{Config, NodeConfig, StoreConfig};
pub use network::Network;
pub use notation::{DurationError, format_duration, parse_duration};
pub use parse::{Parsed, lint, parse, parse_job};
pub use sections::{read_secret_file, read_url_file};
pub(crate) use settings::LEASE_TTL;
pub use sink::{Lang, MailConfig, MailTls, SPREAD, SecretText, SinkConfig, SinkTarget, Sinks, WebForm};
pub use sink_section::usable;
pub(crate) use value::zone_hint;
