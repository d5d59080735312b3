//! Files whose path somebody else has written: read without waiting for what may never come, and within a size; written in a folder in
//! which other users may write, too, without following a link of theirs.

#[cfg(feature = "daemon")]
mod draft;
#[cfg(feature = "daemon")]
mod owned;
mod reading;

use std::fs::{Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

#[cfg(feature = "daemon")]
pub(crate) use draft::{Draft, replace};
#[cfg(feature = "daemon")]
pub(crate) use owned::open_for;
#[cfg(feature = "daemon")]
pub(crate) use reading::open_any;
pub(crate) use reading::{open, read};

fn is_own(found: &Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw()
}

/// Whether the path is a link that another user than root or this one has made: what is written there goes where that user wants.
pub(crate) fn is_foreign_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink() && found.uid() != 0 && !is_own(&found))
}

/// What to open a file with that is written to as it is, besides these flags: a link is followed where no other user can have made it.
pub(crate) fn writing(path: &Path, flags: OFlags) -> io::Result<OpenOptions> {
    let is_link = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    if is_foreign_link(path) {
        return Err(io::Error::other("it is a link that another user has made"));
    }
    let flags = if is_link { flags } else { flags | OFlags::NOFOLLOW };
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(i32::try_from(flags.bits()).unwrap_or(0));
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_of_another_user_is_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let [link, victim] = ["journal", "victim"].map(|name| folder.path().join(name));
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        assert!(
            writing(&link, OFlags::empty()).unwrap().append(true).open(&link).is_ok(),
            "a link of this user is followed"
        );
        if std::os::unix::fs::lchown(&link, Some(65_534), None).is_ok() {
            let refused = writing(&link, OFlags::empty()).unwrap_err().to_string();
            assert_eq!(refused, "it is a link that another user has made");
        }
    }
}
