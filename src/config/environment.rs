//! What checking a file may know of the world around it: variables, the host's name, the date, files that hold secrets. Files are
//! read within bounds.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use chrono::{DateTime, Utc};

use crate::config::diagnostic::position;
use crate::file;

/// What checking a file may know of the world around it.
#[derive(Clone, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    hostname: Option<String>,
    now: DateTime<Utc>,
    reads_streams: bool,
}

impl Environment {
    /// An empty one. `now` is where lints about ticks and daylight saving time begin to look.
    pub const fn new(now: DateTime<Utc>) -> Self {
        Self { variables: BTreeMap::new(), hostname: None, now, reads_streams: false }
    }

    /// This process's variables and this machine's host name. Variables that are not UTF-8 are left out.
    pub fn of_process(now: DateTime<Utc>) -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let hostname = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
        Self { variables, hostname: hostname.filter(|name| !name.is_empty()), ..Self::new(now) }
    }

    /// The same for a command that reads the file once: that need not be a regular file, but may be a pipe, whose writer is
    /// waited for.
    #[must_use]
    pub fn reading_streams(self) -> Self {
        Self { reads_streams: true, ..self }
    }

    /// The same with one variable set.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The same with another host name.
    #[must_use]
    pub fn with_hostname(mut self, name: &str) -> Self {
        self.hostname = Some(name.to_owned());
        self
    }

    /// A variable. Shells set `HOSTNAME` without passing it on, so that one is the machine's own name when it is absent.
    pub fn variable(&self, name: &str) -> Option<&str> {
        let set = self.variables.get(name).map(String::as_str);
        if name == "HOSTNAME" { set.or(self.hostname.as_deref()) } else { set }
    }

    /// Opens the file that is checked; else what is wrong, without the path.
    pub(super) fn open(&self, path: &Path) -> Result<File, String> {
        if self.reads_streams { file::open_any(path) } else { file::open(path) }
    }

    /// When the check is made.
    pub const fn now(&self) -> DateTime<Utc> {
        self.now
    }
}

/// The text of a regular file of at most `limit` bytes; else what is wrong, without the path.
pub(super) fn read_text(path: &Path, limit: u64) -> Result<String, String> {
    text_of(file::open(path)?, limit)
}

/// The text of an open file of at most `limit` bytes; else what is wrong, without the path.
pub(super) fn text_of(file: File, limit: u64) -> Result<String, String> {
    let text = String::from_utf8(file::read(file, limit)?);
    text.map_err(|error| not_utf8(error.as_bytes(), error.utf8_error().valid_up_to()))
}

fn not_utf8(bytes: &[u8], at: usize) -> String {
    let valid = bytes.get(..at).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or("");
    let (line, column) = position(valid, at);
    let byte = bytes.get(at).copied().unwrap_or(0);
    format!("is not UTF-8: byte {byte:#04x} at line {line}, column {column}; save the file as UTF-8")
}

/// Without values: they may be secrets.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment")
            .field("variables", &self.variables.keys())
            .field("hostname", &self.hostname)
            .field("now", &self.now)
            .field("reads_streams", &self.reads_streams)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_name_stands_in_for_a_variable_that_shells_do_not_pass_on() {
        let env = Environment::new(DateTime::UNIX_EPOCH).with_hostname("web-1");
        assert_eq!(env.variable("HOSTNAME"), Some("web-1"));
        assert_eq!(env.variable("OTHER"), None);
        assert_eq!(env.with("HOSTNAME", "set").variable("HOSTNAME"), Some("set"));
    }

    #[test]
    fn values_are_not_shown() {
        let env = Environment::new(DateTime::UNIX_EPOCH).with("TOKEN", "hunter2");
        assert!(!format!("{env:?}").contains("hunter2"));
    }

    #[test]
    fn what_is_not_text_is_told_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.toml");
        std::fs::write(&path, b"a = 1\nb = \"\xff\"\n").unwrap();
        let error = read_text(&path, 2048).unwrap_err();
        assert_eq!(error, "is not UTF-8: byte 0xff at line 2, column 6; save the file as UTF-8");
    }
}
