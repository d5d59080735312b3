//! Writing a file in one step, in a folder in which other users may write, too.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::file::is_own;

/// A file that gets its name when all of it is written: a reader sees all of it or nothing. One that was not finished is removed.
#[derive(Debug)]
pub(crate) struct Draft {
    path: PathBuf,
    draft: Option<PathBuf>,
    file: File,
}

/// Names that are tried for a draft: one may be left by a process that was killed and had the same number.
const DRAFTS: u32 = 100;

impl Draft {
    /// Makes the draft beside the file, for its owner alone.
    pub(crate) fn begin(path: &Path) -> io::Result<Self> {
        let mut number = 0;
        loop {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{}-{number}.new", std::process::id()));
            let draft = PathBuf::from(name);
            // Neither a file that is there nor a link is opened (`O_EXCL`, open(2)).
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft) {
                Ok(file) => return Ok(Self { path: path.to_owned(), draft: Some(draft), file }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < DRAFTS => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes all of it and gives it its name. Where this user has a file of that name, its mode stays; a link is replaced.
    pub(crate) fn finish(mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        if let Some(before) =
            std::fs::symlink_metadata(&self.path).ok().filter(|found| found.is_file() && is_own(found))
        {
            self.file.set_permissions(before.permissions())?;
        }
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

/// Writes a file in one step.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    Draft::begin(path)?.finish(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[test]
    fn a_file_is_written_beside_a_link_and_takes_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let [path, victim] = ["report", "victim"].map(|name| folder.path().join(name));
        std::fs::write(&victim, "precious").unwrap();
        for name in [format!("report.{}-0.new", std::process::id()), "report".to_owned()] {
            std::os::unix::fs::symlink(&victim, folder.path().join(name)).unwrap();
        }
        replace(&path, b"new").unwrap();
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert_eq!((read(&path).as_str(), read(&victim).as_str()), ("new", "precious"));
        let found = std::fs::symlink_metadata(&path).unwrap();
        assert_eq!((found.is_file(), found.mode() & 0o777), (true, 0o600));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        replace(&path, b"newer").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o640, "a reader that was let in stays so");
    }

    #[test]
    fn a_draft_that_is_not_finished_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        drop(Draft::begin(&folder.path().join("report")).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
