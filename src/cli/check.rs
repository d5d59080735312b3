//! `cronward check`: what is wrong with `jobs.toml`, what of it this host lacks, and what its schedules mean in words. Reads files, meets
//! no store.

use std::io::{self, Write};
use std::path::PathBuf;

use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::clock::{Clock, SystemClock};
use crate::config::{self, Config, Diagnostics, Environment, JsonFinding, LoadError};
use crate::job::JobSpec;
use crate::schedule::Timetable;
use crate::slot::Period;
use crate::store;
use crate::zone::{Database, Zone};

/// The file can be used.
const USABLE: u8 = 0;
/// It cannot, or is not there (`EX_CONFIG` of sysexits.h).
const CONFIGURATION: u8 = 78;

/// Check jobs.toml: report errors with line, column and fix, warn of likely mistakes, and describe each schedule in words
#[derive(Clone, Debug, clap::Args)]
#[command(before_help = "Example: cronward check --config /etc/cronward/jobs.toml")]
pub struct CheckArgs {
    /// The file [default: ./jobs.toml, then /etc/cronward/jobs.toml]
    #[arg(long, value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// The format of the findings
    #[arg(long, value_enum, default_value_t = Format::Pretty)]
    pub format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Do not look for the users, folders, files and programs of the jobs on this host
    #[arg(long)]
    pub no_host: bool,
    /// No colour; NO_COLOR in the environment does the same
    #[arg(long)]
    pub no_color: bool,
}

/// How the findings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people: the source line, a caret, a fix
    Pretty,
    /// For programs: an array of {file, line, column, severity, code, message, fix}
    Json,
}

/// Checks a file for the command line.
pub(crate) fn show(args: &CheckArgs, console: &mut Console) -> Result<(), Failure> {
    let environment = Environment::of_process(SystemClock.now().wall).reading_streams();
    let environment = if args.no_host { environment } else { environment.looking_at_host() };
    let (out, err, color) = console.streams();
    match run(args, &environment, out, err, color)? {
        USABLE => Ok(()),
        _ => Err(Failure::Shown),
    }
}

/// Checks a file. Findings go to `out`, and why there is no file to `err`. Answers the exit code: 0 when the file can be
/// used, warnings or not, and 78 when it cannot. Fails only when it cannot write.
pub fn run(
    args: &CheckArgs,
    env: &Environment,
    out: &mut dyn Write,
    err: &mut dyn Write,
    color: bool,
) -> io::Result<u8> {
    let path = match config::find(args.config.as_deref()) {
        Ok(path) => path,
        Err(error) => {
            writeln!(err, "error: {error}")?;
            return Ok(CONFIGURATION);
        }
    };
    let outcome = config::lint_file(&path, env);
    let beside = outcome.as_ref().map(|(config, _)| tokens(config)).unwrap_or_default();
    match args.format {
        Format::Pretty if !args.json => {
            beside.iter().try_for_each(|finding| tell(finding, out))?;
            pretty(&outcome, out, err, color)?;
        }
        Format::Pretty | Format::Json => json(&outcome, beside.clone(), out)?,
    }
    let is_wrong = |finding: &JsonFinding| finding.severity == config::Severity::Error.as_str();
    Ok(if outcome.is_ok() && !beside.iter().any(is_wrong) { USABLE } else { CONFIGURATION })
}

/// What is wrong with the file of tokens that the file names. Whoever cannot read it here may not have to: the daemon has.
#[cfg(feature = "http")]
fn tokens(config: &Config) -> Vec<JsonFinding> {
    use crate::web::{Tokens, TokensFault};
    let Some(http) = &config.http else { return Vec::new() };
    let Some(path) = http.tokens_file.as_deref() else { return Vec::new() };
    let finding = |line: Option<usize>, severity: config::Severity, code, message, fix| {
        let (file, column) = (path.display().to_string(), line.map(|_| 1));
        JsonFinding { file, line, column, severity: severity.as_str(), code, message, fix: Some(fix) }
    };
    match Tokens::read(path) {
        Ok(tokens) if tokens.is_open() => {
            let message = "every user of this machine can read the tokens file: logins are refused".to_owned();
            vec![finding(None, config::Severity::Warning, "tokens-readable", message, "chmod o-r".to_owned())]
        }
        Ok(tokens) if !http.read_only && http.proxy.is_none() && !tokens.has_operator() => {
            let message = "read_only = false has no effect: no token has the role operator".to_owned();
            let fix = "add one: cronward token new --role operator --name NAME".to_owned();
            vec![finding(None, config::Severity::Warning, "no-operator", message, fix)]
        }
        Ok(_) => Vec::new(),
        Err(TokensFault { line: None, what, fix, .. }) => {
            vec![finding(None, config::Severity::Warning, "unreadable-tokens", format!("tokens_file {what}"), fix)]
        }
        Err(TokensFault { line, what, fix, .. }) => {
            vec![finding(line, config::Severity::Error, "bad-token", what, fix)]
        }
    }
}

#[cfg(not(feature = "http"))]
const fn tokens(_config: &Config) -> Vec<JsonFinding> {
    Vec::new()
}

/// A finding in another file, without its line: that is what logins are signed with.
fn tell(finding: &JsonFinding, out: &mut dyn Write) -> io::Result<()> {
    let JsonFinding { file, line, severity, code, message, fix, .. } = finding;
    let place = line.map(|line| format!(":{line}:1")).unwrap_or_default();
    writeln!(out, "{severity}[{code}]: {message}\n --> {file}{place}")?;
    writeln!(out, "  = fix: {}\n", fix.as_deref().unwrap_or_default())
}

type CheckOutcome = Result<(Config, Diagnostics), LoadError>;

fn pretty(outcome: &CheckOutcome, out: &mut dyn Write, err: &mut dyn Write, color: bool) -> io::Result<()> {
    match outcome {
        Ok((config, report)) => {
            out.write_all(report.render(color).as_bytes())?;
            explain(config, out)?;
            writeln!(out, "{}", report.summary())
        }
        Err(LoadError::Invalid(report)) => {
            out.write_all(report.render(color).as_bytes())?;
            writeln!(out, "{}", report.summary())
        }
        Err(error) => writeln!(err, "error: {error}"),
    }
}

fn json(outcome: &CheckOutcome, beside: Vec<JsonFinding>, out: &mut dyn Write) -> io::Result<()> {
    let mut findings = match outcome {
        Ok((_, report)) => report.to_findings(),
        Err(LoadError::Invalid(report)) => report.to_findings(),
        Err(LoadError::File { path, message }) => vec![JsonFinding::unreadable(path, message)],
    };
    findings.extend(beside);
    serde_json::to_writer_pretty(&mut *out, &findings)?;
    writeln!(out)
}

/// One line per job: when it ticks, what a slot is, in which zone, how often it is tried; and one for what the store lacks.
fn explain(config: &Config, out: &mut dyn Write) -> io::Result<()> {
    let width = config.jobs.keys().map(|name| name.as_str().len()).max().unwrap_or(0);
    for spec in config.jobs.values() {
        writeln!(out, "{:width$}  {}", spec.name, words(spec))?;
    }
    if config.jobs.values().any(|spec| spec.timezone != Zone::UTC) {
        writeln!(out, "{}", zones(&Database::current()))?;
    }
    if let Some(lacks) = store::capability(&config.store.url).and_then(|capability| capability.lacks()) {
        writeln!(out, "{lacks}")?;
    }
    if config.jobs.is_empty() { Ok(()) } else { writeln!(out) }
}

/// Where the rules of the jobs' time zones come from.
fn zones(database: &Database) -> String {
    let passed_over = database.passed_over().map(|folder| format!("; TZDIR={} has no zone files", folder.display()));
    format!("time zones: {database}{}", passed_over.unwrap_or_default())
}

/// A sentence as a part of a longer line.
fn as_fragment(sentence: &str) -> String {
    let mut chars = sentence.trim_end_matches('.').chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

fn words(spec: &JobSpec) -> String {
    let ticks = Timetable::of(spec).map_or_else(|_| spec.schedule.clone(), |table| table.schedule().describe());
    let ticks = as_fragment(&ticks);
    let slot = match spec.period {
        Period::Tick => "each scheduled time".to_owned(),
        period => period.to_string(),
    };
    let attempts = match spec.policy.max_attempts {
        1 => "1 attempt".to_owned(),
        number => format!("{number} attempts"),
    };
    let disabled = if spec.enabled { "" } else { "; disabled" };
    format!("{ticks}; slot: {slot}; zone {}; {attempts}{disabled}", spec.timezone)
}
