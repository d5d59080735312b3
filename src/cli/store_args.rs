//! The arguments of every command that meets a store: which file, which store, whose keys.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::admin::command_line::CommandLine;
use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::clock::{Clock, SystemClock};
use crate::config::{self, Config, Diagnostics, Environment, LoadError};
use crate::job::{JobName, Namespace};
use crate::store::{OpenError, StoreOptions, secret_ranges};

/// A command that a person waits for gives the store at least so long for each answer.
const PERSONS_PATIENCE: Duration = Duration::from_secs(5);

/// Which file, which store, whose keys.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Store")]
pub(crate) struct StoreArgs {
    /// The file of jobs [default: ./jobs.toml, then /etc/cronward/jobs.toml]
    #[arg(long, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// The store; overrides the file's and needs no file. Do not put a password into it: use url_file in the file
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// The namespace of the keys; overrides the file's [default: default]
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
    /// The file that the url was read from, and may be read from again; none where it stands elsewhere.
    pub(crate) url_file: Option<PathBuf>,
    /// True when the url was given on the command line.
    pub(crate) from_command_line: bool,
}

impl StoreAddress {
    /// For a command that makes no store.
    pub(crate) fn not_made(self) -> Self {
        Self { options: StoreOptions { create: false, ..self.options }, ..self }
    }

    /// The same for a command that a person waits for. A daemon that gets no answer soon asks again; a person gets an error.
    pub(crate) fn for_a_person(self) -> Self {
        Self {
            options: StoreOptions { op_timeout: self.options.op_timeout.max(PERSONS_PATIENCE), ..self.options },
            ..self
        }
        .not_made()
    }

    /// Why it could not be opened, with what to change.
    pub(crate) fn failed(&self, error: OpenError) -> Failure {
        Failure::opening(error, self.from_command_line)
    }
}

impl StoreArgs {
    /// Reads the file: the one that is named, or the first that is found. None when there is none and `--store` makes
    /// it needless; with `--store` alone no file is looked for.
    pub(crate) fn read_file(&self, console: &mut Console) -> Result<Option<Config>, Failure> {
        if self.config.is_none() && self.store.is_some() {
            return Ok(None);
        }
        read(&self.found()?, console, surroundings().reading_streams(), config::load).map(|(config, _)| Some(config))
    }

    /// The same for a command that needs one job of the file and no other, and is started often: the file of a thousand jobs
    /// is read as soon as that of one.
    pub(crate) fn read_job(&self, job: &JobName, console: &mut Console) -> Result<Option<Config>, Failure> {
        if self.config.is_none() && self.store.is_some() {
            return Ok(None);
        }
        let load = |path: &Path, env: &Environment| config::load_job(path, env, job);
        read(&self.found()?, console, surroundings().reading_streams(), load).map(|(config, _)| Some(config))
    }

    fn found(&self) -> Result<PathBuf, Failure> {
        let path = config::find(self.config.as_deref());
        path.map_err(|none| Failure::Configuration(format!("{none}, or a store with --store URL")))
    }

    /// The store that these arguments and the file name together. Warns of a password on the command line.
    pub(crate) fn address(&self, file: Option<&Config>, console: &mut Console) -> Result<StoreAddress, Failure> {
        if self.store.as_deref().is_some_and(|url| !secret_ranges(url).is_empty()) {
            console.warn(
                "--store carries a password, and every user of this machine can read command lines: \
                 put the url into a file and name it in jobs.toml with [store] url_file",
            );
        }
        self.address_unwarned(file)
    }

    /// The same for what cron starts every hour on every machine, where each word is mailed: `doctor` warns.
    pub(crate) fn address_unwarned(&self, file: Option<&Config>) -> Result<StoreAddress, Failure> {
        let mut options = file.map(|config| config.store.options()).unwrap_or_default();
        if let Some(namespace) = &self.namespace {
            options.namespace = namespace.clone();
        }
        let own = file.filter(|_| self.store.is_none()).map(|config| &config.store);
        let url = self.store.clone().or_else(|| own.map(|store| store.url.clone()));
        let url = url.ok_or_else(|| Failure::Usage("no store: give --config PATH or --store URL".to_owned()))?;
        let url_file = own.and_then(|store| store.url_file.clone());
        Ok(StoreAddress { url, options, url_file, from_command_line: self.store.is_some() })
    }
}

/// The file that is named, or the first that is there.
pub(crate) fn find(named: Option<&Path>) -> Result<PathBuf, Failure> {
    config::find(named).map_err(|error| Failure::Configuration(error.to_string()))
}

/// What a file may say besides its own text.
pub(crate) fn surroundings() -> Environment {
    Environment::of_process(SystemClock.now().wall)
}

/// Reads one file. When it cannot be used, everything that is wrong with it goes to stderr; otherwise the report has
/// warnings only. `load` says how much of it is looked at.
pub(crate) fn read(
    path: &Path,
    console: &mut Console,
    environment: Environment,
    load: impl FnOnce(&Path, &Environment) -> Result<(Config, Diagnostics), LoadError>,
) -> Result<(Config, Diagnostics), Failure> {
    match load(path, &environment) {
        Ok(read) => Ok(read),
        Err(LoadError::Invalid(report)) => {
            console.report(&report);
            Err(Failure::File(report.summary()))
        }
        Err(error) => Err(Failure::Configuration(error.to_string())),
    }
}

impl StoreArgs {
    /// What command lines name that are told to a person.
    pub(crate) fn command_line(&self) -> CommandLine {
        let config = self.config.as_deref().map(|path| path.to_string_lossy().into_owned());
        CommandLine { config, store: self.store.clone(), namespace: self.namespace.clone() }
    }

    /// A command for the store of these arguments.
    pub(crate) fn command(&self, words: impl Display) -> String {
        self.command_line().command(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(store: &str) -> StoreArgs {
        StoreArgs { store: Some(store.to_owned()), ..StoreArgs::default() }
    }

    #[test]
    fn a_password_on_the_command_line_is_warned_of_without_being_shown() {
        for url in [
            "redis://:secret@h",
            "rediss://user:secret@h:1/0",
            "redis://h?password=secret",
            "redis://:a/secret@h",
            "redis://secret@h",
            "redis+sentinel://h/m?sentinel_pass=secret",
            "redis+unix:///s?pass=secret",
            "redlock:u:secret@a",
            "rediss//u:secret@h",
        ] {
            let (mut console, _, err) = Console::captured(false);
            args(url).address(None, &mut console).unwrap();
            assert!(err.text().contains("url_file"), "{url}");
            assert!(!err.text().contains("secret"), "{url}");
            assert_eq!(err.text().lines().count(), 1, "{url}");
        }
    }

    /// Each form of a url in docs/stores.md that can have a secret, with one: as it is written there, and wrongly.
    fn documented() -> Vec<String> {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/stores.md")).unwrap();
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
        let forms = rows.flat_map(|row| row.split(" |").next().unwrap_or_default().split('`').step_by(2));
        let forms = forms.filter(|form| form.contains("://") && !form.starts_with("sqlite"));
        let filled = forms.map(|form| form.replace("://…", "://h1,h2").replace(['…'], "x"));
        let with_secrets = filled.filter(|form| form.contains("://")).flat_map(|form| with_secrets(&form));
        with_secrets
            .flat_map(|url| {
                let joint = if url.contains('?') { '&' } else { '?' };
                let wrong =
                    [url.replacen("://", ":", 1), url.replacen("://", "//", 1), format!("{url}{joint}nonsense=1")];
                std::iter::once(url).chain(wrong)
            })
            .collect()
    }

    fn with_secrets(form: &str) -> Vec<String> {
        let given = form.replace("password@", "hunter2@").replace("pass=p", "pass=hunter2");
        let joint = if form.contains('?') { '&' } else { '?' };
        let mut urls = vec![format!("{form}{joint}password=hunter2"), format!("{form}{joint}sentinel_pass=hun&ter2")];
        if given != form {
            urls.extend([given.replace("hunter2", "hun/ter2"), given.replace("hunter2", "hun?ter2"), given]);
        } else if !form.contains(":///") && !form.contains('@') {
            let user = |user: &str| form.replacen("://", &format!("://{user}@"), 1);
            urls.extend(["u:hunter2", ":hunter2", "u:hun#ter2", "u:hunter2@x"].map(user));
            let lone = form.starts_with("redis") || form.starts_with("redlock") || form.starts_with("etcd");
            urls.extend(lone.then(|| user("hunter2")));
        }
        urls
    }

    #[tokio::test]
    async fn no_secret_of_a_documented_url_is_shown_by_a_check_an_error_or_the_warning() {
        let urls = documented();
        assert!(urls.len() > 200, "{}: {urls:?}", urls.len());
        let is_told = |text: &str| text.contains("hun") || text.contains("ter2");
        for url in &urls {
            let text = format!("[store]\nurl = \"{url}\"\n\n[jobs.a]\nschedule = \"0 0 * * *\"\ncommand = \"true\"\n");
            let report = match config::parse("jobs.toml", text, &Environment::of_process(SystemClock.now().wall)) {
                Ok((config, report)) => {
                    assert!(!is_told(&format!("{config:?}")), "{url}");
                    report
                }
                Err(report) => report,
            };
            assert!(!is_told(&report.render(false)), "{url}\n{}", report.render(false));

            match crate::store::open(url, StoreOptions::default()).await {
                Err(error) => assert!(!is_told(&format!("{error} {error:?}")), "{url}: {error:?}"),
                Ok(store) => assert!(!is_told(store.location()), "{url}: {}", store.location()),
            }

            let (mut console, _, err) = Console::captured(false);
            args(url).address(None, &mut console).unwrap();
            assert!(err.text().contains("url_file"), "{url}: not warned of");
            assert!(!is_told(&err.text()), "{url}");
        }
    }

    #[test]
    fn a_url_without_a_password_is_not_warned_of() {
        for url in ["redis://h", "postgres://user@h/d", "sqlite", "sqlite:///tmp/a:b@c.db"] {
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

    fn typed(config: Option<&str>, store: Option<&str>, namespace: Option<&str>) -> StoreArgs {
        StoreArgs {
            config: config.map(Into::into),
            store: store.map(str::to_owned),
            namespace: namespace.map(|name| Namespace::new(name).unwrap()),
        }
    }

    #[test]
    fn what_was_given_is_given_again_and_what_was_not_is_not() {
        assert_eq!(typed(None, None, None).command("reset a"), "cronward reset a");
        assert_eq!(
            typed(Some("/etc/my jobs.toml"), Some("redis://h:6379/0"), Some("prod")).command("reset a"),
            "cronward reset a --config '/etc/my jobs.toml' --store redis://h:6379/0 --namespace prod"
        );
        assert_eq!(typed(Some("it's"), None, None).command("jobs"), r"cronward jobs --config 'it'\''s'");
    }

    #[test]
    fn a_url_keeps_its_options_and_loses_its_secrets() {
        let told = |url: &str| typed(None, Some(url), None).command("jobs");
        assert_eq!(told("postgres://h/db?sslmode=require"), "cronward jobs --store 'postgres://h/db?sslmode=require'");
        assert_eq!(told("redis://:secret@h/1"), "cronward jobs --store 'redis://:***@h/1'");
        for url in ["redis://user:secret@h", "redis://h?password=secret", "redis://:a/secret@h", "redis://secret@h"] {
            assert!(!told(url).contains("secret"), "{}", told(url));
        }
    }

    #[test]
    fn what_needs_a_jobs_command_names_a_file_that_has_it() {
        let args = typed(Some("mine.toml"), Some("sqlite:a.db"), None);
        assert_eq!(
            args.command_line().command_of_file("trigger a", true),
            "cronward trigger a --config mine.toml --store sqlite:a.db"
        );
        assert_eq!(
            args.command_line().command_of_file("trigger a", false),
            "cronward trigger a --config FILE --store sqlite:a.db"
        );
    }
}
