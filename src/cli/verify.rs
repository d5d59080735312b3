//! `cronward verify`: reads files and hands them to the checker. What is judged there is `verify`'s.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::admin::words::harmless_lines;
use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::value_parsers;
use crate::file;
use crate::verify::{Inputs, Malformed, check};

/// Check from the journals of all nodes that every slot was done once, and explain each one that was not
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Example: cronward verify a.jsonl b.jsonl --faults faults.jsonl",
    after_help = "Exit codes: 0 everything is explained, 1 something is unexplained, 64 a file cannot be read."
)]
pub(crate) struct VerifyArgs {
    /// The journals of every node (files of `cronward run --journal`), including rotated ones; each at most 1 GiB
    #[arg(value_name = "JOURNAL", required = true)]
    pub(crate) journals: Vec<PathBuf>,
    /// What the jobs themselves recorded of their runs, on one clock: overlap is then measured and not inferred
    #[arg(long, value_name = "FILE")]
    pub(crate) recorder: Option<PathBuf>,
    /// Which faults were injected, and what operators changed
    #[arg(long, value_name = "FILE")]
    pub(crate) faults: Option<PathBuf>,
    /// Extra time for each time limit (the next attempt, a first or a late start) and for the effects of a fault, on a machine
    /// that is slow to run processes
    #[arg(long, value_name = "DURATION", value_parser = value_parsers::span)]
    pub(crate) allowance: Option<Duration>,
    /// JSON with documented, stable fields
    #[arg(long)]
    pub(crate) json: bool,
}

/// Writes the report; fails when something is wrong in it.
pub(crate) fn verify(args: &VerifyArgs, console: &mut Console) -> Result<(), Failure> {
    let mut inputs = Inputs::default();
    inputs.allowance = args.allowance.unwrap_or_default();
    for journal in &args.journals {
        take(journal, |name, text| inputs.journal(name, text))?;
    }
    if let Some(recorder) = &args.recorder {
        take(recorder, |name, text| inputs.recorder(name, text))?;
    }
    if let Some(faults) = &args.faults {
        take(faults, |name, text| inputs.faults(name, text))?;
    }
    let report = check(inputs);
    if args.json {
        console.json(&report)?;
    } else {
        // Lines of files are shown: nothing in them may move a cursor.
        for line in harmless_lines(&report.to_string()) {
            console.print(&format!("{line}\n"))?;
        }
    }
    if report.is_clean() { Ok(()) } else { Err(Failure::Found) }
}

/// No file is read beyond this: what was read is kept as a whole, and a device or a pipe may have no end.
const LARGEST: u64 = 1 << 30;

/// The command line named the file: one that is missing or is something else is a wrong command line.
fn take(path: &Path, parse: impl FnOnce(&str, &str) -> Result<(), Malformed>) -> Result<(), Failure> {
    let name = path.display().to_string();
    let bytes = read(path, &name, LARGEST)?;
    // A line that is no text is no line of ours: the parser says where.
    let way_out = "name files that cronward wrote: `cronward verify --help` says which";
    parse(&name, &String::from_utf8_lossy(&bytes))
        .map_err(|malformed| Failure::Usage(format!("{malformed}; {way_out}")))
}

/// What the file has, of at most so many bytes.
fn read(path: &Path, name: &str, largest: u64) -> Result<Vec<u8>, Failure> {
    let way_out = "name the files of `cronward run --journal`";
    let opened = File::open(path).map_err(|error| Failure::Usage(format!("cannot read {name}: {error}; {way_out}")))?;
    file::read(opened, largest).map_err(|why| Failure::Usage(format!("{name} {why}; {way_out}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_read_up_to_the_limit_and_refused_with_it() {
        let told = read(Path::new("/dev/zero"), "x", 1 << 20).unwrap_err();
        assert_eq!(told.exit_code(), crate::cli::ExitCode::Usage);
        let wanted = "x is larger than 1024 KiB: is it the right file?; name the files of `cronward run --journal`";
        assert_eq!(told.to_string(), wanted);
    }
}
