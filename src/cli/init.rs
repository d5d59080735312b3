//! `cronward init`: a first `jobs.toml`. Writes one file, and never over another.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::cli::console::Console;
use crate::cli::failure::Failure;

/// The sample of the repository, with every key and three jobs that are seen to work.
const SAMPLE: &str = include_str!("../../jobs.toml");

/// Write a sample jobs.toml, with every key explained and three jobs to try
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward init /etc/cronward/jobs.toml")]
pub(crate) struct Args {
    /// The file to write; its folder has to exist
    #[arg(value_name = "PATH", default_value = "jobs.toml")]
    pub(crate) path: PathBuf,
}

/// Writes the file.
pub(crate) fn init(args: &Args, console: &mut Console) -> Result<(), Failure> {
    let shown = args.path.display();
    write(&args.path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure::Configuration(format!("{shown} exists and was not changed; name another path"))
        }
        _ => Failure::Configuration(format!("cannot write {shown}: {error}; name another path")),
    })?;
    let config = if args.path == Path::new("jobs.toml") { String::new() } else { format!(" --config {shown}") };
    console.print(&format!("Wrote {shown}. Next: cronward check{config}, then cronward run{config}\n"))
}

/// Makes the file and fills it; one that is there, or a link that points anywhere, is an error.
fn write(path: &Path) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let written = file.write_all(SAMPLE.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        // A half of it would be taken for the whole. That it cannot be removed either is not the news.
        let _ = std::fs::remove_file(path);
    }
    written
}
