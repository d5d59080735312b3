//! Finding `jobs.toml` and reading it within bounds. The one file here that touches the disk.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::config::{Config, Environment, Report, parse, secrets};

/// Where the file is looked for when nobody names it, in this order.
const SEARCHED: [&str; 2] = ["./jobs.toml", "/etc/cronward/jobs.toml"];

/// The largest file that is read, in bytes. Ten thousand jobs fit; a wrong path to something huge does not.
const LARGEST: u64 = 4 * 1024 * 1024;

/// There is no file to read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no configuration: tried {}; write a jobs.toml, or name one with --config PATH", tried(.0))]
pub struct NotFound(Vec<PathBuf>);

fn tried(paths: &[PathBuf]) -> String {
    let shown: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    shown.join(" and ")
}

/// Why a file could not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// It could not be read at all: absent, no permission, too large, not UTF-8.
    #[error("{path}: {message}")]
    File {
        /// The file's path, as given.
        path: String,
        /// What is wrong, with the way out where there is one.
        message: String,
    },
    /// It was read, and there are errors in it.
    #[error("{0}")]
    Invalid(Box<Report>),
}

/// The file to read: the one that is named, else `./jobs.toml`, else `/etc/cronward/jobs.toml`.
pub fn find(explicit: Option<&Path>) -> Result<PathBuf, NotFound> {
    let candidates: Vec<PathBuf> = match explicit {
        Some(path) => vec![path.to_owned()],
        None => SEARCHED.iter().map(PathBuf::from).collect(),
    };
    match candidates.iter().find(|path| path.exists()) {
        // In messages `jobs.toml` reads better.
        Some(path) if explicit.is_none() => Ok(path.strip_prefix("./").unwrap_or(path).to_owned()),
        Some(path) => Ok(path.clone()),
        None => Err(NotFound(candidates)),
    }
}

/// Reads and checks a file. The report in `Ok` has warnings and notes only.
pub fn load(path: &Path, env: &Environment) -> Result<(Config, Report), LoadError> {
    let shown = path.display().to_string();
    let text = match read_text(path, LARGEST) {
        Ok(text) => text,
        Err(message) => return Err(LoadError::File { path: shown, message }),
    };
    let (config, mut report) = parse(&shown, text, env).map_err(|report| LoadError::Invalid(Box::new(report)))?;
    secrets::warn_if_readable(&mut report, world_readable(path));
    Ok((config, report))
}

/// Whether every user of the host may read the file.
fn world_readable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|data| data.permissions().mode() & 0o004 != 0)
}

/// The text of a file of at most `limit` bytes; else what is wrong, without the path.
pub(super) fn read_text(path: &Path, limit: u64) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("cannot be read: {}", reason(&error));
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    // One byte more than allowed tells a full file from one that is too large, whatever its metadata says.
    file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
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
    let (line, column) = super::diagnostic::position(valid, at);
    let byte = bytes.get(at).copied().unwrap_or(0);
    format!("is not UTF-8: byte {byte:#04x} at line {line}, column {column}; save the file as UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_is_told_with_every_path_tried() {
        let error = find(Some(Path::new("/nowhere/jobs.toml"))).unwrap_err().to_string();
        assert_eq!(
            error,
            "no configuration: tried /nowhere/jobs.toml; write a jobs.toml, or name one with --config PATH"
        );
    }

    #[test]
    fn what_is_not_text_is_told_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.toml");
        std::fs::write(&path, b"a = 1\nb = \"\xff\"\n").unwrap();
        let error = read_text(&path, LARGEST).unwrap_err();
        assert_eq!(error, "is not UTF-8: byte 0xff at line 2, column 6; save the file as UTF-8");
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
}
