//! The file of `--report`.
//!
//! It is made before the command is started, so that a path that cannot be written is known in time, and filled in one step: a reader sees
//! all of it or nothing. It is for its owner alone, unless it was there with another mode. What is no regular file (a pipe, a terminal) is
//! written to as it is.

use std::io::Write;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::Serialize;

use crate::cli::failure::Failure;
use crate::file;

/// A report to be written.
#[derive(Debug)]
pub(super) struct ReportFile {
    path: PathBuf,
    file: Destination,
}

/// Where a report is written to.
#[derive(Debug)]
enum Destination {
    Draft(file::Draft),
    /// No regular file.
    Special(std::fs::File),
}

impl ReportFile {
    /// Makes the file's draft beside it.
    pub(super) fn begin(path: &Path) -> Result<Self, Failure> {
        let refused = |error: std::io::Error| {
            let is_unread = error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error());
            let error = if is_unread { "it is a pipe that no process reads".to_owned() } else { error.to_string() };
            Failure::Usage(format!("--report {}: {error}; name another file; nothing was started", path.display()))
        };
        let special = std::fs::metadata(path).is_ok_and(|found| !found.is_file()) && !file::is_foreign_link(path);
        let file = if special || is_descriptor(path) {
            // A pipe that nobody reads is refused now: opening it would wait for a reader, deaf to signals.
            file::writing(path, OFlags::NONBLOCK)
                .and_then(|mut options| options.append(true).open(path))
                // Its reader may be slow.
                .and_then(|file| Ok(rustix::fs::fcntl_setfl(&file, OFlags::APPEND).map(|()| file)?))
                .map(Destination::Special)
        } else {
            file::Draft::begin(path, 0o600).map(Destination::Draft)
        };
        Ok(Self { path: path.to_owned(), file: file.map_err(refused)? })
    }

    /// Fills it in and gives it its name. That this failed is told in words: the command's exit code matters more.
    pub(super) fn finish(self, view: &impl Serialize) -> Result<(), String> {
        let Self { path, file } = self;
        write(file, view).map_err(|error| {
            format!("--report {}: {error}; the command's exit code is passed on all the same", path.display())
        })
    }
}

/// Whether the path names a descriptor of this process, as `/dev/stdout` does. What that was redirected to may be a regular file, and
/// a file of that name would take the place of the device.
fn is_descriptor(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder == "/dev" || folder == "/dev/fd" || folder.starts_with("/proc"))
}

fn write(file: Destination, view: &impl Serialize) -> std::io::Result<()> {
    let mut bytes = serde_json::to_vec_pretty(view)?;
    bytes.push(b'\n');
    match file {
        Destination::Draft(draft) => draft.finish(&bytes),
        Destination::Special(mut file) => file.write_all(&bytes),
    }
}
