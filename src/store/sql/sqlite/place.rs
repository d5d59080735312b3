//! From a url to the path of the file. Reads no file and no environment by itself: variables come in by a parameter.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::store::OpenError;

/// The file's name below a state directory.
const FILE: &str = "cronward.sqlite";

/// Where the environment is read.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The path that a url names. `sqlite` alone is [`FILE`] in `$STATE_DIRECTORY` (systemd's `StateDirectory=`; the first,
/// where it lists several), else in `$XDG_STATE_HOME/cronward`, else in `~/.local/state/cronward`.
///
/// What follows `sqlite:` or `sqlite://` is a path as it stands: nothing is decoded or expanded in it.
pub(super) fn resolve(url: &str, env: Environment<'_>) -> Result<PathBuf, OpenError> {
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

fn default_path(env: Environment<'_>) -> Option<PathBuf> {
    // The XDG base directory specification has relative paths ignored; the other two are never relative.
    let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    first_state_directory(env)
        .or_else(|| absolute("XDG_STATE_HOME").map(|state| state.join("cronward")))
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state/cronward")))
        .map(|directory| directory.join(FILE))
}

/// systemd.exec(5): the paths of several state directories are joined by colons.
fn first_state_directory(env: Environment<'_>) -> Option<PathBuf> {
    std::env::split_paths(&env("STATE_DIRECTORY")?).next().filter(|path| path.is_absolute())
}

/// The place for messages: `sqlite:` and the path.
pub(super) fn location(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

#[cfg(test)]
mod tests {
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
}
