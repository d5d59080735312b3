//! The file itself: which one a url names, its directory, its mode, the file system that it is on. Never opens it.
//!
//! POSIX locks belong to the process: whoever opens the file beside SQLite and closes it again drops SQLite's locks
//! (sqlite.org/howtocorrupt.html, 2.2). So everything here goes by path.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, accessat, mknodat, statfs};

use crate::file;
use crate::store::sql::fault::SqlFault;
use crate::store::{ErrorKind, OpenError};

/// The file's name below a state directory.
const FILE: &str = "cronward.sqlite";

/// Where the environment is read. Nothing here reads it by itself.
type ReadEnv<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The path that a url names. `sqlite` alone is [`FILE`] in `$STATE_DIRECTORY` (systemd's `StateDirectory=`; the first,
/// where it lists several), else in `$XDG_STATE_HOME/cronward`, else in `~/.local/state/cronward`.
///
/// What follows `sqlite:` or `sqlite://` is a path as it stands: nothing is decoded or expanded in it.
pub(super) fn resolve(url: &str, env: ReadEnv<'_>) -> Result<PathBuf, OpenError> {
    let refuse = |message: &str| OpenError::Url { url: url.to_owned(), message: message.to_owned() };
    let Some(rest) = url.strip_prefix("sqlite:") else {
        return default_path(env).ok_or_else(|| {
            refuse("neither $STATE_DIRECTORY, $XDG_STATE_HOME nor $HOME is set: write sqlite:/path/to/file")
        });
    };
    let path = rest.strip_prefix("//").unwrap_or(rest);
    refusal(path).map_or_else(|| Ok(PathBuf::from(path)), |message| Err(refuse(message)))
}

/// Refuses a url whose text names no path.
pub(in crate::store) fn check(url: &str) -> Result<(), OpenError> {
    if url.starts_with("sqlite:") { resolve(url, &|_| None).map(drop) } else { Ok(()) }
}

/// Why a text cannot be a path here, with what to write instead.
fn refusal(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        Some("it names no file: write sqlite:/path/to/file, or sqlite alone for the default")
    } else if path.starts_with(":memory:") {
        Some("a store in memory is written memory:")
    } else if path.starts_with('~') {
        Some("~ is not expanded here: write the whole path")
    } else if path.contains(['?', '#']) {
        Some("it takes no options: nothing may follow the path, and the path has no ? or #")
    } else if path.contains('\0') || path.ends_with('/') {
        Some("that is no file's name: write sqlite:/path/to/file")
    } else {
        None
    }
}

fn default_path(env: ReadEnv<'_>) -> Option<PathBuf> {
    // The XDG base directory specification has relative paths ignored; the other two are never relative.
    let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    first_state_directory(env)
        .or_else(|| absolute("XDG_STATE_HOME").map(|state| state.join("cronward")))
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state/cronward")))
        .map(|directory| directory.join(FILE))
}

/// systemd.exec(5): the paths of several state directories are joined by colons.
fn first_state_directory(env: ReadEnv<'_>) -> Option<PathBuf> {
    std::env::split_paths(&env("STATE_DIRECTORY")?).next().filter(|path| path.is_absolute())
}

/// The place for messages: `sqlite:` and the path.
pub(super) fn location(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

/// File systems where the shared memory of WAL or its locks do not work between hosts (sqlite.org/wal.html), by
/// the number in statfs(2).
const NETWORK: [(i64, &str); 11] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x0102_1997, "9p"),
    (0x5346_414f, "AFS"),
    (0x00c3_6400, "CephFS"),
    (0x7375_7245, "Coda"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x564c, "NCP"),
];

/// Which file a path names now. Another one there later means that it was removed or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// None when there is no file. Cheap and without disk access while the file is open: its path is in memory then.
    pub(super) fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|meta| Self { device: meta.dev(), inode: meta.ino() })
    }
}

/// Makes sure that there is a file that SQLite can use; one that is made is only for its owner. With `create` false nothing is
/// made.
pub(super) fn prepare(path: &Path, create: bool) -> Result<FileId, SqlFault> {
    let directory = parent(path);
    if create {
        make_directory(&directory)?;
    } else if matches!(std::fs::metadata(path), Err(error) if is_missing(&error)) {
        return Err(missing(path, &directory));
    }
    refuse_network(&directory)?;
    if create {
        make_file(path)?;
    }
    // Again for the file: it may be a link to elsewhere.
    refuse_network(path)?;
    check_access(path, &directory)?;
    FileId::of(path).ok_or_else(|| vanished(path))
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// For whoever only looks.
fn missing(path: &Path, directory: &Path) -> SqlFault {
    let what = match std::fs::metadata(directory) {
        Err(error) if is_missing(&error) => format!("there is no store, nor a directory {}", directory.display()),
        _ => format!("there is no store: no file {}", path.display()),
    };
    let advice = "name the one that `cronward run` or `cronward exec` uses, or make it with `cronward migrate`";
    SqlFault::known(ErrorKind::Unavailable, format!("{what}; {advice}"))
}

fn make_directory(directory: &Path) -> Result<(), SqlFault> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(|error| {
        let advice = "create it for the user that cronward runs as, or choose another path";
        refused(error, &format!("cannot create directory {}", directory.display()), advice)
    })
}

fn refuse_network(path: &Path) -> Result<(), SqlFault> {
    let found =
        statfs(path).map_err(|error| refused(error.into(), &format!("cannot look at {}", path.display()), ""))?;
    // The type of f_type differs between platforms; its low 32 bits are the number.
    #[allow(clippy::unnecessary_cast, reason = "needed where it is not i64")]
    let magic = (found.f_type as i64) & 0xffff_ffff;
    match NETWORK.iter().find(|(number, _)| *number == magic) {
        None => Ok(()),
        Some((_, name)) => Err(SqlFault::known(
            ErrorKind::Unsupported,
            format!(
                "{} is on a network file system ({name}), where SQLite's locks are not safe: use a local path, or a \
                 store on the network",
                path.display()
            ),
        )),
    }
}

/// Makes an empty file of mode 0600 without opening it; SQLite gives `-wal` and `-shm` the same mode.
fn make_file(path: &Path) -> Result<(), SqlFault> {
    match mknodat(CWD, path, FileType::RegularFile, Mode::RUSR | Mode::WUSR, 0) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        // A read-only file system says so before it looks whether the file is there.
        Err(_) if path.exists() => Ok(()),
        Err(error) => {
            let advice = "give the user that cronward runs as the right to write there, or choose another path";
            Err(refused(error.into(), &format!("cannot create {}", path.display()), advice))
        }
    }
}

fn check_access(path: &Path, directory: &Path) -> Result<(), SqlFault> {
    let meta =
        std::fs::metadata(path).map_err(|error| refused(error, &format!("cannot look at {}", path.display()), ""))?;
    if !meta.is_file() {
        return Err(SqlFault::known(ErrorKind::Unsupported, format!("{} is not a regular file", path.display())));
    }
    if file::is_foreign_link(path) {
        let message = format!("{} is a link that another user has made: name the file itself", path.display());
        return Err(SqlFault::known(ErrorKind::Denied, message));
    }
    let allowed = |path: &Path, access| accessat(CWD, path, access, AtFlags::EACCESS).is_ok();
    let advice = "check its owner and mode";
    if !allowed(path, Access::READ_OK) {
        return Err(SqlFault::known(ErrorKind::Denied, format!("no permission to read {}: {advice}", path.display())));
    }
    if !allowed(path, Access::WRITE_OK) {
        let message =
            format!("{} cannot be written: {advice}, and that the disk is not mounted read-only", path.display());
        return Err(SqlFault::known(ErrorKind::ReadOnly, message));
    }
    if !allowed(directory, Access::WRITE_OK | Access::EXEC_OK) {
        let message = format!(
            "directory {} cannot be written, and SQLite keeps its log beside the file: {advice}",
            directory.display()
        );
        return Err(SqlFault::known(ErrorKind::ReadOnly, message));
    }
    Ok(())
}

fn vanished(path: &Path) -> SqlFault {
    SqlFault::known(ErrorKind::Unavailable, format!("{} was removed while it was being opened", path.display()))
}

fn refused(error: io::Error, what: &str, advice: &str) -> SqlFault {
    use io::ErrorKind as Io;
    let kind = match error.kind() {
        Io::PermissionDenied => ErrorKind::Denied,
        Io::ReadOnlyFilesystem => ErrorKind::ReadOnly,
        Io::StorageFull | Io::QuotaExceeded => ErrorKind::Overloaded,
        Io::NotADirectory | Io::AlreadyExists | Io::InvalidFilename => ErrorKind::Unsupported,
        _ => ErrorKind::Unavailable,
    };
    let message = if advice.is_empty() { format!("{what}: {error}") } else { format!("{what}: {error}; {advice}") };
    SqlFault::Known { kind, message, source: Some(error) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn with(variables: &[(&str, &str)], url: &str) -> Result<PathBuf, OpenError> {
        let env = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        resolve(url, &env)
    }

    #[test]
    fn the_default_file_is_in_the_first_state_directory_of_the_service() {
        let all = [("STATE_DIRECTORY", "/var/lib/a:/var/lib/b"), ("XDG_STATE_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(with(&all, "sqlite").unwrap(), Path::new("/var/lib/a/cronward.sqlite"));
    }

    #[test]
    fn without_a_service_the_default_file_is_in_the_users_state() {
        let user = [("XDG_STATE_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(with(&user, "sqlite").unwrap(), Path::new("/x/cronward/cronward.sqlite"));
        assert_eq!(with(&user[1..], "sqlite").unwrap(), Path::new("/h/.local/state/cronward/cronward.sqlite"));
    }

    #[test]
    fn an_empty_or_relative_variable_counts_as_unset() {
        let odd = [("STATE_DIRECTORY", ""), ("XDG_STATE_HOME", "relative"), ("HOME", "/h")];
        assert_eq!(with(&odd, "sqlite").unwrap(), Path::new("/h/.local/state/cronward/cronward.sqlite"));
    }

    #[test]
    fn without_any_variable_the_error_says_what_to_write() {
        assert!(with(&[], "sqlite").unwrap_err().to_string().contains("write sqlite:/path/to/file"));
    }

    #[test]
    fn a_path_is_taken_as_it_stands() {
        for (url, path) in [
            ("sqlite:rel/a.db", "rel/a.db"),
            ("sqlite://rel/a.db", "rel/a.db"),
            ("sqlite:/abs/a.db", "/abs/a.db"),
            ("sqlite:///abs/a.db", "/abs/a.db"),
            ("sqlite:/a%20b", "/a%20b"),
        ] {
            assert_eq!(with(&[], url).unwrap(), Path::new(path), "{url}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused_with_what_to_write() {
        for (url, part) in [
            ("sqlite:", "names no file"),
            ("sqlite://", "names no file"),
            ("sqlite::memory:", "written memory:"),
            ("sqlite:~/a", "not expanded"),
            ("sqlite:/a?mode=ro", "no options"),
            ("sqlite:/a/", "no file's name"),
            ("sqlite:/a\0b", "no file's name"),
        ] {
            assert!(with(&[], url).unwrap_err().to_string().contains(part), "{url}");
        }
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_created_is_only_for_its_owner() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b/c.db");
        prepare(&path, true).unwrap();
        assert_eq!((mode(&path), mode(&root.path().join("a")), mode(&root.path().join("a/b"))), (0o600, 0o700, 0o700));
    }

    #[test]
    fn a_file_that_is_there_is_left_as_it_is() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("c.db");
        std::fs::write(&path, "x").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o660)).unwrap();
        let first = prepare(&path, true).unwrap();
        assert_eq!((mode(&path), std::fs::read(&path).unwrap()), (0o660, b"x".to_vec()));
        assert_eq!(FileId::of(&path), Some(first));
    }

    #[test]
    fn whoever_only_looks_makes_nothing_and_is_told_what_is_missing() {
        let root = tempfile::tempdir().unwrap();
        let fault = |path: &str| prepare(&root.path().join(path), false).unwrap_err();
        for (path, told) in [("c.db", "no file "), ("a/b/c.db", "nor a directory ")] {
            assert!(matches!(fault(path), SqlFault::Known { kind: ErrorKind::Unavailable, .. }), "{path}");
            let fault = fault(path).to_string();
            assert!(fault.contains(told) && fault.contains(&root.path().display().to_string()), "{fault}");
        }
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
        prepare(&root.path().join("c.db"), true).unwrap();
        prepare(&root.path().join("c.db"), false).unwrap();
        assert!(fault("c.db/d.db").to_string().contains("no file "));
    }

    #[test]
    fn a_directory_or_a_device_is_no_store() {
        let root = tempfile::tempdir().unwrap();
        for path in [root.path(), Path::new("/dev/null")] {
            let fault = prepare(path, true).unwrap_err().to_string();
            assert!(fault.contains("not a regular file"), "{fault}");
        }
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let root = tempfile::tempdir().unwrap();
        let blocker = root.path().join("blocker");
        std::fs::write(&blocker, "").unwrap();
        let fault = prepare(&blocker.join("c.db"), true).unwrap_err();
        assert!(fault.to_string().contains(&blocker.display().to_string()), "{fault}");
        assert!(matches!(fault, SqlFault::Known { kind: ErrorKind::Unsupported, .. }), "{fault:?}");
    }

    #[test]
    fn the_file_system_that_tests_run_on_is_no_network() {
        refuse_network(Path::new("/tmp")).unwrap();
    }
}
