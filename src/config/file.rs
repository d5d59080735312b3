//! Finding `jobs.toml`, reading it within bounds, and whether root may run what it says.

use std::path::{Path, PathBuf};

use crate::config::context::text_of;
use crate::config::{Config, Diagnostic, Diagnostics, Environment, Parsed, Severity, parse, secrets};
use crate::job::JobName;

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
    Invalid(Box<Diagnostics>),
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

/// Reads a file and says whether it can be used. The report in `Ok` has warnings only. What root would run from a file that
/// others can write is refused.
pub fn load(path: &Path, env: &Environment) -> Result<(Config, Diagnostics), LoadError> {
    trusted(path, env, |shown, text| parse::parse(shown, text, env))
}

/// The same for one job of the file: see [`crate::config::parse_job`].
pub fn load_job(path: &Path, env: &Environment, job: &JobName) -> Result<(Config, Diagnostics), LoadError> {
    trusted(path, env, |shown, text| parse::parse_job(shown, text, env, job))
}

/// Reads a file and says everything that is worth saying about it. Runs nothing of it, so that a file which root would refuse
/// is one with a warning.
pub fn lint_file(path: &Path, env: &Environment) -> Result<(Config, Diagnostics), LoadError> {
    let (config, mut report, access) = read(path, env, |shown, text| parse::lint(shown, text, env))?;
    if let Some(why) = access.distrust(path) {
        let message = format!("commands that run as root refuse this file: it {why}");
        let finding =
            Diagnostic { severity: Severity::Warning, code: "untrusted-file", message, span: 0..0, hint: None };
        report.findings.insert(0, finding);
    }
    Ok((config, report))
}

fn trusted(
    path: &Path,
    env: &Environment,
    parse: impl FnOnce(&str, String) -> Parsed,
) -> Result<(Config, Diagnostics), LoadError> {
    let (config, report, access) = read(path, env, parse)?;
    match access.distrust(path) {
        Some(message) => Err(LoadError::File { path: path.display().to_string(), message }),
        None => Ok((config, report)),
    }
}

fn read(
    path: &Path,
    env: &Environment,
    parse: impl FnOnce(&str, String) -> Parsed,
) -> Result<(Config, Diagnostics, Access), LoadError> {
    let shown = path.display().to_string();
    let read = env.open(path).and_then(|file| Ok((Access::of(&file), text_of(file, LARGEST)?)));
    let (access, text) = read.map_err(|message| LoadError::File { path: shown.clone(), message })?;
    let (config, mut report) = parse(&shown, text).map_err(|report| LoadError::Invalid(Box::new(report)))?;
    secrets::warn_if_readable(&mut report, access.mode & 0o004 != 0);
    Ok((config, report, access))
}

/// Who may change or read an open file, and whose rights this process has. Of the file that was opened, not of its name,
/// which may be another one's by now.
struct Access {
    owner: u32,
    mode: u32,
    root: bool,
}

impl Access {
    fn of(file: &std::fs::File) -> Self {
        use std::os::unix::fs::MetadataExt;
        let root = nix::unistd::geteuid().is_root();
        // What cannot be asked for is trusted by nobody.
        file.metadata().map_or(Self { owner: u32::MAX, mode: 0o777, root }, |data| Self {
            owner: data.uid(),
            mode: data.mode(),
            root,
        })
    }

    /// Why root should run nothing of the file, with the way out; none for everybody else.
    fn distrust(&self, path: &Path) -> Option<String> {
        let (owner, shown) = (self.owner, path.display());
        if !self.root {
            None
        } else if owner != 0 {
            Some(format!("belongs to user {owner}, who could let root run anything; chown root {shown}"))
        } else if self.mode & 0o002 != 0 {
            Some(format!("can be written by every user, who could let root run anything; chmod o-w {shown}"))
        } else {
            None
        }
    }
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
    fn root_runs_nothing_of_a_file_that_others_can_write() {
        let distrust = |root, owner, mode| Access { owner, mode, root }.distrust(Path::new("jobs.toml"));
        assert_eq!(distrust(true, 0, 0o100_644), None);
        assert!(distrust(true, 0, 0o100_646).unwrap().ends_with("; chmod o-w jobs.toml"));
        assert!(distrust(true, 1_000, 0o100_600).unwrap().starts_with("belongs to user 1000, "));
        assert_eq!(distrust(false, 1_000, 0o100_666), None);
    }
}
