//! `cronward run`: the daemon's command line. What it then does is the node's.

use std::path::PathBuf;

use crate::cli::console::Console;
#[cfg(feature = "http")]
use crate::cli::daemon::Serving;
use crate::cli::daemon::{self, Settings};
use crate::cli::failure::Failure;
use crate::cli::store_args::{self, StoreArgs};
#[cfg(feature = "http")]
use crate::config::HttpConfig;
use crate::config::{self, Config, Severity};
use crate::job::NodeName;
use crate::observe::logging::{self, LogFormat, LoggingError};

/// Run the jobs of the file as a node, together with every other node of the same store
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward run --config /etc/cronward/jobs.toml")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// This node's name, instead of the file's
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<NodeName>,
    /// Append every event to this journal, for `cronward verify`; overrides the file's
    #[arg(long, value_name = "PATH")]
    pub(crate) journal: Option<PathBuf>,
    /// Listen for HTTP there, as an address and a port; overrides the file's
    #[cfg(feature = "http")]
    #[arg(long, value_name = "ADDR", value_parser = listen, conflicts_with = "no_http")]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// Do not listen for HTTP, whatever the file says
    #[arg(long)]
    pub(crate) no_http: bool,
    /// The format of the log; auto is journald under systemd, pretty on a terminal, json elsewhere
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub(crate) log_format: LogFormat,
    /// Die with this process, the one that starts the node
    #[arg(long, value_name = "PID", hide = true)]
    pub(crate) parent: Option<u32>,
}

/// Reads everything, sets up the log, and starts the daemon.
pub(crate) fn run(args: &RunArgs, console: &mut Console) -> Result<(), Failure> {
    if let Some(parent) = args.parent {
        tie_to(parent)?;
    }
    daemon::keep_small();
    // The jobs are in the file: `--store` alone cannot replace it here.
    let path = store_args::find(args.store.config.as_deref())?;
    let (config, report) = store_args::read(&path, console, store_args::surroundings(), config::lint_file)?;
    let settings = settings(args, path, config, console)?;
    #[cfg(not(feature = "http"))]
    if settings.config.http.is_some() && !args.no_http {
        console.warn("this cronward was built without the feature http: nothing listens, whatever [http] says");
    }
    #[cfg(not(feature = "notify"))]
    if !settings.config.notify.is_empty() {
        console.warn("this cronward was built without the feature notify: nothing is sent, whatever [notify] says");
    }
    let _log = logging::init(args.log_format).map_err(no_log)?;
    for finding in report.findings.iter().filter(|finding| finding.severity == Severity::Warning) {
        let (line, hint) = (report.position(finding.span.start).0, finding.hint.as_deref());
        tracing::warn!(file = report.path, line, code = finding.code, hint, "{}", finding.message);
    }
    // The daemon lives for months, and the text of the file is in there.
    drop(report);
    daemon::start(settings)
}

fn no_log(error: LoggingError) -> Failure {
    match error {
        LoggingError::Thread(_) => Failure::Internal(error.to_string()),
        LoggingError::Filter { .. } | LoggingError::Journal(_) | LoggingError::Twice(_) => {
            Failure::Usage(error.to_string())
        }
    }
}

/// Lets this process be killed when the one that started it ends. One that has ended already is no longer the parent.
fn tie_to(parent: u32) -> Result<(), Failure> {
    let tied = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    tied.map_err(|error| Failure::Internal(format!("--parent {parent}: {error}")))?;
    if std::os::unix::process::parent_id() == parent {
        return Ok(());
    }
    Err(Failure::Usage(format!("--parent {parent} did not start this process: leave it out")))
}

fn settings(args: &RunArgs, path: PathBuf, mut config: Config, console: &mut Console) -> Result<Settings, Failure> {
    let store = args.store.address(Some(&config), console)?;
    if let Some(node) = &args.node {
        config.node.name = node.clone();
    }
    if let Some(journal) = &args.journal {
        config.node.journal = Some(journal.clone());
    }
    #[cfg(feature = "http")]
    let port = port(args, config.http.as_ref()).map(Serving::prepare).transpose()?;
    Ok(Settings {
        path,
        config,
        store,
        #[cfg(feature = "http")]
        port,
    })
}

/// What is to be served: nothing, unless the file or the command line says so.
#[cfg(feature = "http")]
fn port(args: &RunArgs, file: Option<&HttpConfig>) -> Option<HttpConfig> {
    match (args.no_http, args.listen) {
        (true, _) => None,
        (false, None) => file.cloned(),
        (false, Some(listen)) => Some(HttpConfig { listen, ..file.cloned().unwrap_or_default() }),
    }
}

#[cfg(feature = "http")]
fn listen(text: &str) -> Result<std::net::SocketAddr, String> {
    config::parse_listen(text).ok_or_else(|| config::listen_hint(text).replace('"', ""))
}
