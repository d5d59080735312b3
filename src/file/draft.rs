//! Writing a file in one step, in a folder in which other users may write, too.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::file::is_own;

/// A file that gets its name when all of it is written: a reader sees all of it or nothing. One that was not finished is removed.
#[derive(Debug)]
pub(crate) struct Draft {
    path: PathBuf,
    draft: Option<PathBuf>,
    file: File,
    mode: u32,
}

/// Names that are tried for a draft: one may be left by a process that was killed and had the same number.
const DRAFTS: u32 = 100;

impl Draft {
    /// Makes the draft beside the file, for its owner alone until it is finished. A new file gets this mode.
    pub(crate) fn begin(path: &Path, mode: u32) -> io::Result<Self> {
        let mut number = 0;
        loop {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{}-{number}.new", std::process::id()));
            let draft = PathBuf::from(name);
            // Neither a file that is there nor a link is opened (`O_EXCL`, open(2)).
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft) {
                Ok(file) => return Ok(Self { path: path.to_owned(), draft: Some(draft), file, mode }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < DRAFTS => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes all of it and gives it its name. Where this user has a file of that name, its permissions stay; a link is replaced. A file
    /// with a second name may be another user's hard link to a file of this one: its permissions say nothing of this name.
    pub(crate) fn finish(mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        let before = std::fs::symlink_metadata(&self.path).ok();
        let before = before.filter(|found| found.is_file() && is_own(found) && found.nlink() == 1);
        let mode = before.map_or(self.mode, |found| found.mode() & 0o777);
        self.file.set_permissions(Permissions::from_mode(mode))?;
        self.file.sync_data()?;
        if let Some(draft) = &self.draft {
            std::fs::rename(draft, &self.path)?;
        }
        self.draft = None;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        self.draft.iter().for_each(|draft| drop(std::fs::remove_file(draft)));
    }
}

/// Writes a file in one step. A new file gets this mode.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    Draft::begin(path, mode)?.finish(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_beside_a_link_and_takes_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let [path, victim] = ["report", "victim"].map(|name| folder.path().join(name));
        std::fs::write(&victim, "precious").unwrap();
        for name in [format!("report.{}-0.new", std::process::id()), "report".to_owned()] {
            std::os::unix::fs::symlink(&victim, folder.path().join(name)).unwrap();
        }
        replace(&path, b"new", 0o600).unwrap();
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert_eq!((read(&path).as_str(), read(&victim).as_str()), ("new", "precious"));
        let found = std::fs::symlink_metadata(&path).unwrap();
        assert_eq!((found.is_file(), found.mode() & 0o777), (true, 0o600));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        replace(&path, b"newer", 0o600).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o640, "a reader that was let in stays so");
    }

    #[test]
    fn neither_a_second_name_nor_a_set_user_id_bit_gives_a_file_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["report", "other"].map(|name| folder.path().join(name));
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4755)).unwrap();
        replace(&path, b"new", 0o600).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o755);
        std::fs::hard_link(&path, &other).unwrap();
        replace(&path, b"new", 0o600).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    }

    #[test]
    fn a_draft_that_is_not_finished_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        drop(Draft::begin(&folder.path().join("report"), 0o600).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
