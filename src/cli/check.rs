//! `cronward check`: what is wrong with `jobs.toml`, and what its schedules mean in words. Reads files, meets no store.

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
    match args.format {
        Format::Pretty if !args.json => pretty(&outcome, out, err, color)?,
        Format::Pretty | Format::Json => json(&outcome, out)?,
    }
    Ok(if outcome.is_ok() { USABLE } else { CONFIGURATION })
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

fn json(outcome: &CheckOutcome, out: &mut dyn Write) -> io::Result<()> {
    let findings = match outcome {
        Ok((_, report)) => report.to_findings(),
        Err(LoadError::Invalid(report)) => report.to_findings(),
        Err(LoadError::File { path, message }) => vec![JsonFinding::unreadable(path, message)],
    };
    serde_json::to_writer_pretty(&mut *out, &findings)?;
    writeln!(out)
}

/// One line per job: when it ticks, what a slot is, in which zone, how often it is tried; and one for what the store lacks.
fn explain(config: &Config, out: &mut dyn Write) -> io::Result<()> {
    let width = config.jobs.keys().map(|name| name.as_str().len()).max().unwrap_or(0);
    for spec in config.jobs.values() {
        writeln!(out, "{:width$}  {}", spec.name, words(spec))?;
    }
    if let Some(lacks) = store::capability(&config.store.url).and_then(|capability| capability.lacks()) {
        writeln!(out, "{lacks}")?;
    }
    if config.jobs.is_empty() { Ok(()) } else { writeln!(out) }
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
