//! Reading a file whose path somebody else has written: without waiting for what may never come, and within a size.

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file to be read; else what is wrong, without the path. Nothing else is opened, since a pipe may never have a
/// writer and a device never an end. A disk that hangs is waited for.
pub(crate) fn open(path: &Path) -> Result<File, String> {
    be_regular(std::fs::metadata(path).map_err(|error| failed(&error))?.file_type())?;
    // Should it be a pipe by now: with this flag nobody waits for a writer (open(2)); for a regular file it means nothing.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|error| failed(&error))?;
    be_regular(file.metadata().map_err(|error| failed(&error))?.file_type())?;
    Ok(file)
}

/// The same of whatever can be read, such as a pipe, whose writer is waited for.
#[cfg(feature = "daemon")]
pub(crate) fn open_any(path: &Path) -> Result<File, String> {
    File::open(path).map_err(|error| failed(&error))
}

/// What an open file has, of at most `limit` bytes; else what is wrong, without the path.
pub(crate) fn read(file: File, limit: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    // One byte more than allowed tells a full file from one that is too large, whatever its metadata says.
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limit {
        return Err(format!("is larger than {} KiB: is it the right file?", limit / 1024));
    }
    Ok(bytes)
}

/// That a folder is none is told by reading it.
pub(super) fn be_regular(kind: FileType) -> Result<(), String> {
    let what = if kind.is_file() || kind.is_dir() {
        return Ok(());
    } else if kind.is_fifo() {
        "pipe"
    } else if kind.is_socket() {
        "socket"
    } else {
        "device"
    };
    Err(format!("is not a regular file but a {what}: write the text into a file"))
}

pub(super) fn failed(error: &io::Error) -> String {
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        _ => error.to_string(),
    };
    format!("cannot be read: {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_within(path: &Path, limit: u64) -> Result<usize, String> {
        read(open(path)?, limit).map(|bytes| bytes.len())
    }

    #[test]
    fn a_file_is_read_up_to_its_limit_and_no_further() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.toml");
        std::fs::write(&path, "x".repeat(2048)).unwrap();
        assert_eq!(read_within(&path, 2048), Ok(2048));
        assert_eq!(read_within(&path, 2047).unwrap_err(), "is larger than 1 KiB: is it the right file?");
        assert_eq!(read_within(folder.path(), 1).unwrap_err(), "cannot be read: it is a directory");
        let endless = read(open_any(Path::new("/dev/zero")).unwrap(), 2047);
        assert_eq!(endless.unwrap_err(), "is larger than 1 KiB: is it the right file?");
    }

    #[test]
    fn a_pipe_and_a_device_are_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("jobs.toml");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for (path, kind) in [(&*pipe, "pipe"), (Path::new("/dev/zero"), "device")] {
            let error = read_within(path, 2048).unwrap_err();
            assert_eq!(error, format!("is not a regular file but a {kind}: write the text into a file"));
        }
    }
}
