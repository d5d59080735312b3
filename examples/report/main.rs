//! Writes `docs/reliability.md` from what the parts of `make report` left in `target/reliability`. Runs none of them.

mod evidence;
#[allow(dead_code, reason = "the harness asks for single names, this for all")]
#[path = "../../tests/cluster/chaos/stores/names.rs"]
mod names;
mod render;
mod servers;
mod simulated;

use std::path::Path;
use std::process::{Command, ExitCode};

use evidence::{Evidence, Tree};

const FOLDER: &str = "target/reliability";
const PAGE: &str = "docs/reliability.md";

#[allow(clippy::print_stderr, reason = "a program of its own, for developers")]
fn main() -> ExitCode {
    let outcome = tree().and_then(|tree| write(&tree));
    outcome.map_or_else(
        |error| {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

/// Writes the page, also when what it tells is bad; that is an error all the same.
fn write(tree: &Tree) -> Result<(), String> {
    let evidence = Evidence::read(Path::new(FOLDER), tree)?;
    std::fs::write(PAGE, render::render(&evidence)).map_err(|error| format!("{PAGE}: {error}"))?;
    let faults = evidence.faults();
    if faults.is_empty() {
        Ok(())
    } else {
        Err(format!("{PAGE} is written, and it tells of faults: {}", faults.join("; ")))
    }
}

fn tree() -> Result<Tree, String> {
    let commit = git(&["rev-parse", "HEAD"])?.trim().to_owned();
    let changed = git(&["status", "--porcelain", "--", ".", &format!(":!{PAGE}")])?;
    Ok(Tree { commit, changed })
}

fn git(args: &[&str]) -> Result<String, String> {
    let output = Command::new("git").args(args).output().map_err(|error| format!("git: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("git {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
    }
}
