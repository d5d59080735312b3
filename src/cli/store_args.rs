//! The arguments of every command that meets a store: which file, which store, whose keys.

use std::path::{Path, PathBuf};

use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::clock::{Clock, SystemClock};
use crate::config::{self, Config, Environment, LoadError, Report};
use crate::job::Namespace;
use crate::store::{StoreOptions, redact};

/// Which file, which store, whose keys.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Store")]
pub(crate) struct StoreArgs {
    /// The file of jobs [default: ./jobs.toml, then /etc/cronward/jobs.toml]
    #[arg(long, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// The store, instead of the file's; needs no file. Keep passwords out of it: use url_file in the file
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// Whose keys, instead of the file's [default: default]
    #[arg(long, value_name = "NS")]
    pub(crate) namespace: Option<Namespace>,
}

/// Where the store is and how it is opened.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StoreAddress {
    /// Holds secrets: never printed.
    pub(crate) url: String,
    /// Whose keys, and limits.
    pub(crate) options: StoreOptions,
    /// True when the url was given on the command line.
    pub(crate) from_command_line: bool,
}

impl StoreArgs {
    /// Reads the file: the one that is named, or the first that is found. None when there is none and `--store` makes
    /// it needless; with `--store` alone no file is looked for.
    pub(crate) fn read_file(&self, console: &mut Console) -> Result<Option<Config>, Failure> {
        if self.config.is_none() && self.store.is_some() {
            return Ok(None);
        }
        let path = config::find(self.config.as_deref());
        let path = path.map_err(|none| Failure::Configuration(format!("{none}, or a store with --store URL")))?;
        read(&path, console).map(|(config, _)| Some(config))
    }

    /// The store that these arguments and the file name together. Warns of a password on the command line.
    pub(crate) fn address(&self, file: Option<&Config>, console: &mut Console) -> Result<StoreAddress, Failure> {
        let from_command_line = self.store.is_some();
        if self.store.as_deref().is_some_and(carries_password) {
            console.warn(
                "--store carries a password, and every user of this machine can read command lines: \
                 put the url into a file and name it in jobs.toml with [store] url_file",
            );
        }
        let mut options = file.map(|config| config.store.options()).unwrap_or_default();
        if let Some(namespace) = &self.namespace {
            options.namespace = namespace.clone();
        }
        let url = self.store.clone().or_else(|| file.map(|config| config.store.url.clone()));
        let url = url.ok_or_else(|| Failure::Usage("no store: give --config PATH or --store URL".to_owned()))?;
        Ok(StoreAddress { url, options, from_command_line })
    }
}

/// The file that is named, or the first that is there.
pub(crate) fn find(named: Option<&Path>) -> Result<PathBuf, Failure> {
    config::find(named).map_err(|error| Failure::Configuration(error.to_string()))
}

/// Reads one file. When it cannot be used, everything that is wrong with it goes to stderr; otherwise the report has
/// warnings only.
pub(crate) fn read(path: &Path, console: &mut Console) -> Result<(Config, Report), Failure> {
    let environment = Environment::of_process(SystemClock.now().wall);
    match config::load(path, &environment) {
        Ok(read) => Ok(read),
        Err(LoadError::Invalid(report)) => {
            console.report(&report);
            Err(Failure::File(report.summary()))
        }
        Err(error) => Err(Failure::Configuration(error.to_string())),
    }
}

/// Whether a url has a password that a process list would show.
fn carries_password(url: &str) -> bool {
    let shown = redact(url);
    shown.contains(":***@")
        || shown.ends_with("://***")
        || url.split_once('?').is_some_and(|(_, query)| query.contains("password="))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(store: &str) -> StoreArgs {
        StoreArgs { store: Some(store.to_owned()), ..StoreArgs::default() }
    }

    #[test]
    fn a_password_on_the_command_line_is_warned_of_without_being_shown() {
        for url in
            ["redis://:secret@h", "rediss://user:secret@h:1/0", "redis://h?password=secret", "redis://:a/secret@h"]
        {
            let (mut console, _, err) = Console::captured(false);
            args(url).address(None, &mut console).unwrap();
            assert!(err.text().contains("url_file"), "{url}");
            assert!(!err.text().contains("secret"), "{url}");
            assert_eq!(err.text().lines().count(), 1, "{url}");
        }
    }

    #[test]
    fn a_url_without_a_password_is_not_warned_of() {
        for url in ["redis://h", "redis://user@h", "sqlite", "sqlite:///tmp/a:b@c.db"] {
            let (mut console, _, err) = Console::captured(false);
            args(url).address(None, &mut console).unwrap();
            assert_eq!(err.text(), "", "{url}");
        }
    }

    #[test]
    fn the_namespace_of_the_command_line_wins() {
        let (mut console, _, _) = Console::captured(false);
        let namespace = Some(Namespace::new("prod").unwrap());
        let address = StoreArgs { namespace: namespace.clone(), ..args("memory") }.address(None, &mut console).unwrap();
        assert_eq!(Some(address.options.namespace), namespace);
        assert!(address.from_command_line);
    }

    #[test]
    fn a_store_on_the_command_line_needs_no_file() {
        let (mut console, _, _) = Console::captured(false);
        assert_eq!(args("memory").read_file(&mut console).unwrap(), None);
    }
}
