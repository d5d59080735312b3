//! What checking a file may know of the world around it: variables, the host's name, the date, files that hold secrets. Files are
//! read within bounds.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use chrono::{DateTime, Utc};
use rustix::fs::OFlags;

use crate::config::diagnostic::position;

/// What checking a file may know of the world around it.
#[derive(Clone, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    hostname: Option<String>,
    now: DateTime<Utc>,
}

impl Environment {
    /// An empty one. `now` is where lints about ticks and daylight saving time begin to look.
    pub const fn new(now: DateTime<Utc>) -> Self {
        Self { variables: BTreeMap::new(), hostname: None, now }
    }

    /// This process's variables and this machine's host name. Variables that are not UTF-8 are left out.
    pub fn of_process(now: DateTime<Utc>) -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let hostname = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
        Self { variables, hostname: hostname.filter(|name| !name.is_empty()), now }
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

    /// When the check is made.
    pub const fn now(&self) -> DateTime<Utc> {
        self.now
    }
}

/// The text of a file of at most `limit` bytes; else what is wrong, without the path.
pub(super) fn read_text(path: &Path, limit: u64) -> Result<String, String> {
    text_of(open(path)?, limit)
}

/// Opens a regular file to be read; else what is wrong, without the path. Nothing else is waited for: who opens a pipe with
/// `O_NONBLOCK` need not wait for somebody to write (open(2)), and for a regular file that flag means nothing.
pub(super) fn open(path: &Path) -> Result<std::fs::File, String> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|error| failed(&error))?;
    let kind = file.metadata().map_err(|error| failed(&error))?.file_type();
    if kind.is_file() || kind.is_dir() {
        return Ok(file);
    }
    Err("is not a regular file (but a pipe or a device): write the text into a file".to_owned())
}

fn failed(error: &std::io::Error) -> String {
    format!("cannot be read: {}", reason(error))
}

/// The text of an open file of at most `limit` bytes; else what is wrong, without the path.
pub(super) fn text_of(file: std::fs::File, limit: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    // One byte more than allowed tells a full file from one that is too large, whatever its metadata says.
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limit {
        return Err(format!("is larger than {} KiB: is it the right file?", limit / 1024));
    }
    String::from_utf8(bytes).map_err(|error| not_utf8(error.as_bytes(), error.utf8_error().valid_up_to()))
}

fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        std::io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        _ => error.to_string(),
    }
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
    fn a_file_is_read_up_to_its_limit_and_no_further() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.toml");
        std::fs::write(&path, "x".repeat(2048)).unwrap();
        assert_eq!(read_text(&path, 2048).unwrap().len(), 2048);
        assert_eq!(read_text(&path, 2047).unwrap_err(), "is larger than 1 KiB: is it the right file?");
        assert_eq!(read_text(folder.path(), 1).unwrap_err(), "cannot be read: it is a directory");
    }

    #[test]
    fn a_pipe_and_a_device_are_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("jobs.toml");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for path in [&*pipe, Path::new("/dev/zero")] {
            let error = read_text(path, 2048).unwrap_err();
            assert!(error.starts_with("is not a regular file"), "{error}");
        }
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
