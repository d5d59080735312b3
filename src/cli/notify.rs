//! `cronward notify test`: sends one message to a sink of the file, and shows what the receiver answered.

use std::path::PathBuf;

use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::launching::hiding;
use crate::cli::store_args;
use crate::clock::{Clock, SystemClock};
use crate::config::{self, Config, SinkConfig};
use crate::drive::Entropy;
use crate::event::NoticeKind;
use crate::notify::{TestMessage, TestReceipt, send_test, use_ring};

/// Try the sinks of the file's [notify] sections
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward notify test ops")]
pub(crate) struct NotifyArgs {
    #[command(subcommand)]
    pub(crate) verb: NotifyVerb,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum NotifyVerb {
    Test(TestArgs),
}

/// Send one message to a sink, and show what the receiver answered
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward notify test ops --event failed")]
pub(crate) struct TestArgs {
    /// The sink: NAME of [notify.NAME]
    #[arg(value_name = "NAME")]
    pub(crate) sink: String,
    /// Send it as this event of a job that does not exist
    #[arg(long, value_name = "EVENT", value_parser = event)]
    pub(crate) event: Option<NoticeKind>,
    /// The file [default: ./jobs.toml, then /etc/cronward/jobs.toml]
    #[arg(long, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
}

fn event(text: &str) -> Result<NoticeKind, String> {
    let known = NoticeKind::ALL.map(|(word, _)| word).join(", ");
    NoticeKind::named(text).ok_or_else(|| format!("write one of {known}"))
}

/// Sends it.
pub(crate) async fn notify(args: &NotifyArgs, console: &mut Console) -> Result<(), Failure> {
    let NotifyVerb::Test(args) = &args.verb;
    let path = store_args::find(args.config.as_deref())?;
    let (config, _) = store_args::read(&path, console, store_args::surroundings(), config::load)?;
    let sink = sink_of(&config, &args.sink)?;
    let entropy = Entropy::from_system().map_err(|error| Failure::Internal(format!("no random source: {error}")))?;
    use_ring();
    let test = TestMessage {
        sink: &args.sink,
        config: sink,
        event: args.event,
        namespace: config.store.namespace.clone(),
        node: config.node.name.clone(),
        page: config.http.as_ref().and_then(|http| http.public_url.clone()),
        token: entropy.token(),
        now: SystemClock.now().wall,
    };
    match send_test(test, hiding(&config.store.url)).await.map_err(Failure::Configuration)? {
        TestReceipt::Taken(said) => console.print(&format!("sent to {}: {said}\n", args.sink)),
        TestReceipt::Again { error, .. } => {
            Err(Failure::Unheard(format!("{} did not take the message: {error}; a daemon would try again", args.sink)))
        }
        TestReceipt::Refused(error) => {
            Err(Failure::Unheard(format!("{} refused the message: {error}; look at [notify.{}]", args.sink, args.sink)))
        }
    }
}

fn sink_of<'a>(config: &'a Config, name: &str) -> Result<&'a SinkConfig, Failure> {
    config.notify.get(name).ok_or_else(|| {
        let known: Vec<&str> = config.notify.keys().map(String::as_str).collect();
        let shown: String = name.chars().take(60).collect();
        Failure::Usage(match config.nearest_sink(name) {
            _ if known.is_empty() => format!("there is no sink {shown:?}: the file has no [notify.NAME]; add one"),
            Some(near) => format!("there is no sink {shown:?}; did you mean {near}?"),
            None => format!("there is no sink {shown:?}; the file has {}", known.join(", ")),
        })
    })
}
