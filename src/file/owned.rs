//! Opening a file in the name of a user who may have fewer rights than this process: no link of that user leads it to a file which the
//! user may not read.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use crate::file::reading::{be_regular, failed};

/// Why a file was not opened, without its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unopened {
    /// In words.
    pub(crate) why: String,
    /// The error of the system call, if one failed.
    pub(crate) errno: Option<Errno>,
}

impl Unopened {
    fn of(error: &io::Error) -> Self {
        Self { why: failed(error), errno: Errno::from_io_error(error) }
    }

    const fn refused(why: String) -> Self {
        Self { why, errno: None }
    }
}

/// Opens a regular file to be read. With a `user`, the file is that user's own, or it is root's or this process's and no link leads to it.
pub(crate) fn open_for(path: &Path, user: Option<u32>) -> Result<File, Unopened> {
    let handle = File::from(handle_at(CWD, path, OFlags::empty())?);
    let found = handle.metadata().map_err(|error| Unopened::of(&error))?;
    be_regular(found.file_type()).map_err(Unopened::refused)?;
    match user {
        Some(user) if found.uid() != user => direct(path).and_then(|handle| reopen(&handle)),
        _ => reopen(&handle),
    }
}

/// A handle of a file of root or of this process's user, without a link on the way.
fn direct(path: &Path) -> Result<File, Unopened> {
    let handle = without_links(path)?;
    let found = handle.metadata().map_err(|error| Unopened::of(&error))?;
    be_regular(found.file_type()).map_err(Unopened::refused)?;
    if found.uid() != 0 && found.uid() != rustix::process::geteuid().as_raw() {
        let owner = found.uid();
        return Err(Unopened::refused(format!(
            "belongs to another user ({owner}): give it to root or to the job's user (chown)"
        )));
    }
    if found.nlink() > 1 {
        return Err(Unopened::refused("has a second name (a hard link): copy it, so that it has one".to_owned()));
    }
    Ok(handle)
}

/// Walks to a file. No link is followed, neither at the end nor on the way.
fn without_links(path: &Path) -> Result<File, Unopened> {
    let start = if path.is_absolute() { "/" } else { "." };
    let mut place = File::from(handle_at(CWD, Path::new(start), OFlags::empty())?);
    let mut walked = PathBuf::new();
    for part in path.components() {
        walked.push(part);
        let name = match part {
            Component::Normal(name) => Path::new(name),
            Component::ParentDir => Path::new(".."),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => continue,
        };
        place = File::from(handle_at(&place, name, OFlags::NOFOLLOW)?);
        if place.metadata().map_err(|error| Unopened::of(&error))?.is_symlink() {
            return Err(Unopened::refused(format!(
                "is not the job's user's own, and {} is a link: name the file without links (realpath)",
                walked.display()
            )));
        }
    }
    Ok(place)
}

/// A handle opens nothing yet: neither is a pipe waited for nor a device touched.
fn handle_at(folder: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Unopened> {
    openat(folder, path, OFlags::PATH | OFlags::CLOEXEC | flags, Mode::empty())
        .map_err(|errno| Unopened::of(&errno.into()))
}

/// Opens what the handle is of, and nothing that has taken its name since.
fn reopen(handle: &File) -> Result<File, Unopened> {
    let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    File::options().read(true).custom_flags(flags).open(path).map_err(|error| Unopened::of(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: u32 = 61_001;
    const BOB: u32 = 61_002;

    fn why(path: &Path) -> String {
        open_for(path, Some(ALICE)).map(drop).unwrap_err().why
    }

    #[test]
    fn in_the_name_of_a_user_no_link_of_that_user_leads_to_a_file_of_root() {
        let folder = tempfile::tempdir().unwrap();
        // The folder itself may be named by a link.
        let folder = folder.path().canonicalize().unwrap();
        let [secret, link, inner, alices, hard] =
            ["secret.env", "link.env", "inner", "own.env", "hard.env"].map(|name| folder.join(name));
        std::fs::write(&secret, "A=secret").unwrap();
        assert!(open_for(&secret, Some(ALICE)).is_ok(), "root's own, by its name");
        std::os::unix::fs::symlink(&secret, &link).unwrap();
        assert!(why(&link).contains("link.env is a link: name the file without links"), "{}", why(&link));
        assert!(open_for(&link, None).is_ok(), "nobody else is asked for");
        std::os::unix::fs::symlink(&folder, &inner).unwrap();
        assert!(why(&inner.join("secret.env")).contains("inner is a link"));
        std::fs::write(&alices, "A=own").unwrap();
        if std::os::unix::fs::chown(&alices, Some(ALICE), None).is_ok() {
            assert!(open_for(&inner.join("own.env"), Some(ALICE)).is_ok(), "her own, whichever way leads there");
            std::os::unix::fs::chown(&alices, Some(BOB), None).unwrap();
            assert!(why(&alices).starts_with("belongs to another user (61002): give it to root"), "{}", why(&alices));
        }
        std::fs::hard_link(&secret, &hard).unwrap();
        assert!(why(&hard).starts_with("has a second name"), "{}", why(&hard));
    }
}
