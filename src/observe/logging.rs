//! Where the log goes and what it looks like. Never on stdout: that is for results.
//!
//! `CRONWARD_LOG`, or else `RUST_LOG`, says what is logged (`debug`, `cronward=debug,warn`); `info` when neither does.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::sync::OnceLock;

use clap::ValueEnum;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt};

use crate::observe::log_queue::{Datagrams, Entries, LogQueue};

pub use crate::observe::log_queue::Log;

/// Where the log goes, for whoever ends the process from elsewhere.
static QUEUE: OnceLock<LogQueue> = OnceLock::new();

/// Asked in this order for what is logged.
const VARIABLES: [&str; 2] = ["CRONWARD_LOG", "RUST_LOG"];

/// Logged when nobody says otherwise. A client's chatter is not news.
const DEFAULT: &str = "info,sqlx=warn,redis=warn,tokio_cron_scheduler=warn";

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// `journald` under systemd, `pretty` on a terminal, `json` elsewhere.
    #[default]
    Auto,
    /// One line of text per event, for people.
    Pretty,
    /// One JSON object per line.
    Json,
    /// Fields of the systemd journal.
    Journald,
}

/// Why no log could be set up.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// The filter cannot be read.
    #[error(
        "{variable}={value:?} is not a log filter: {source}; write a level such as `debug`, or `cronward=debug,warn`"
    )]
    Filter {
        /// Where it was found.
        variable: &'static str,
        /// As it was found.
        value: String,
        /// What is wrong.
        source: tracing_subscriber::filter::ParseError,
    },
    /// There is no journal.
    #[error("cannot write to the journal: {0}; choose another --log-format")]
    Journal(#[source] io::Error),
    /// The log needs a thread, or stderr is closed.
    #[error("cannot write a log: {0}; allow this user more processes (`ulimit -u`; `TasksMax=` of a service)")]
    Thread(#[source] io::Error),
    /// Something else logs already.
    #[error("the log is set up already: {0}")]
    Twice(#[from] TryInitError),
}

/// Lets the last lines be written, for a second at most: a panic may be the end of the process.
pub(crate) fn let_last_lines_out() {
    if let Some(queue) = QUEUE.get() {
        queue.let_last_lines_out();
    }
}

/// Sets up the log of this process, once. Its owner keeps the answer until the end.
pub fn init(format: LogFormat) -> Result<Log, LoggingError> {
    let filter = filter(&|name| std::env::var(name).ok())?;
    let stream = std::env::var("JOURNAL_STREAM").ok();
    let chosen = choose(format, stream.as_deref(), stderr_file(), io::stderr().is_terminal());
    let journal = (chosen == LogFormat::Journald).then(Datagrams::to_journal);
    let (queue, layer): (_, fn(LogQueue) -> Boxed) = match journal {
        Some(Ok(journal)) => (LogQueue::to_writer(journal), |queue| Entries(queue).boxed()),
        Some(Err(error)) if format == LogFormat::Journald => return Err(LoggingError::Journal(error)),
        // Under systemd without a socket to the journal, its text form is better than no log.
        Some(Err(_)) => (LogQueue::to_stderr(), json),
        None => (LogQueue::to_stderr(), if chosen == LogFormat::Json { json } else { pretty }),
    };
    let queue = queue.map_err(LoggingError::Thread)?;
    let layer = layer(queue.clone());
    tracing_subscriber::registry().with(layer).with(filter).try_init()?;
    // There is no other: a second log was refused.
    let _ = QUEUE.set(queue.clone());
    Ok(Log::of(queue))
}

type Boxed = Box<dyn Layer<Registry> + Send + Sync>;

fn json(queue: LogQueue) -> Boxed {
    fmt::layer().json().flatten_event(true).with_writer(move || queue.clone()).boxed()
}

fn pretty(queue: LogQueue) -> Boxed {
    let color = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    fmt::layer().compact().with_ansi(color).with_target(false).with_writer(move || queue.clone()).boxed()
}

/// What is logged.
fn filter(env: &dyn Fn(&str) -> Option<String>) -> Result<EnvFilter, LoggingError> {
    let said = |variable| env(variable).filter(|value| !value.is_empty()).map(|value| (variable, value));
    let (variable, value) = VARIABLES.into_iter().find_map(said).unwrap_or(("", DEFAULT.to_owned()));
    EnvFilter::try_new(&value).map_err(|source| LoggingError::Filter { variable, value, source })
}

/// The format for `auto`. `JOURNAL_STREAM` is `device:inode` of the stream that systemd connected to the journal; a
/// stderr that leads elsewhere by now (`2>file`) is not that stream (systemd.exec(5)).
fn choose(format: LogFormat, stream: Option<&str>, stderr: Option<(u64, u64)>, terminal: bool) -> LogFormat {
    if format != LogFormat::Auto {
        return format;
    }
    let connected = stderr.map(|(device, inode)| format!("{device}:{inode}"));
    match stream {
        Some(stream) if connected.as_deref() == Some(stream) => LogFormat::Journald,
        _ if terminal => LogFormat::Pretty,
        _ => LogFormat::Json,
    }
}

/// Device and inode of stderr.
fn stderr_file() -> Option<(u64, u64)> {
    let stat = rustix::fs::fstat(io::stderr().as_fd()).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_is_the_journal_only_where_stderr_still_leads_there() {
        let auto = |stream, stderr, terminal| choose(LogFormat::Auto, stream, stderr, terminal);
        assert_eq!(auto(Some("8:42"), Some((8, 42)), false), LogFormat::Journald);
        assert_eq!(auto(Some("8:42"), Some((8, 43)), false), LogFormat::Json);
        assert_eq!(auto(Some("8:42"), None, false), LogFormat::Json);
        assert_eq!(auto(Some(""), Some((8, 42)), true), LogFormat::Pretty);
        assert_eq!(auto(None, Some((8, 42)), true), LogFormat::Pretty);
        assert_eq!(auto(None, Some((8, 42)), false), LogFormat::Json);
    }

    #[test]
    fn a_format_that_is_named_is_taken() {
        for format in [LogFormat::Pretty, LogFormat::Json, LogFormat::Journald] {
            assert_eq!(choose(format, Some("8:42"), Some((8, 42)), true), format);
        }
    }

    #[test]
    fn the_first_variable_that_says_something_decides() {
        let both = |name: &str| (name == "RUST_LOG").then(|| "trace".to_owned()).or(Some(String::new()));
        assert_eq!(filter(&both).unwrap().to_string(), "trace");
        let own = |name: &str| Some(if name == "CRONWARD_LOG" { "debug" } else { "trace" }.to_owned());
        assert_eq!(filter(&own).unwrap().to_string(), "debug");
        let default = filter(&|_| None).unwrap().to_string();
        assert!(default.contains("info"), "{default}");
    }

    #[test]
    fn a_filter_that_cannot_be_read_names_its_variable() {
        let error = filter(&|_| Some("cronward=loud".to_owned())).unwrap_err().to_string();
        assert!(error.starts_with("CRONWARD_LOG=\"cronward=loud\" is not a log filter"), "{error}");
    }
}
