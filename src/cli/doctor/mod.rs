//! `cronward doctor`: which settings of the store in use can lose or repeat a run. Opens the store, prints, and ends
//! with 0, 1 or 2.
//!
//! What is tried and what it means is `admin::doctor`'s.

use std::sync::Arc;

use crate::admin::doctor::{Needs, examine};
use crate::admin::words::harmless;
use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::format::{self, Grid};
use crate::cli::store_args::{StoreAddress, StoreArgs};
use crate::clock::SystemClock;
use crate::config::Config;
use crate::drive::Entropy;
use crate::observe::view::DoctorView;
use crate::store::{Finding, Severity};

/// Check the configured store for settings that can lose or repeat a run, and show how to fix them
///
/// Tries each operation of the store on a temporary job, node and lock, and removes them again. Changes nothing else.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Example: cronward doctor --config /etc/cronward/jobs.toml",
    after_help = "Exit codes: 0 no problems, 1 warnings, 2 errors."
)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Looks at the store.
pub(crate) async fn doctor(args: &DoctorArgs, console: &mut Console) -> Result<(), Failure> {
    let file = args.store.read_file(console)?;
    let address = args.store.address(file.as_ref(), console)?.not_made();
    let entropy = Entropy::from_system().map_err(|error| Failure::Internal(format!("no random source: {error}")))?;
    let view = look(&address, file.as_ref(), &entropy).await?;
    if args.output.json {
        console.json(&view)?;
    } else {
        print(&view, console)?;
    }
    match view.severity {
        Severity::Ok => Ok(()),
        Severity::Warning => Err(Failure::Found),
        Severity::Fault => Err(Failure::Faults),
    }
}

/// Everything that was found.
async fn look(address: &StoreAddress, file: Option<&Config>, entropy: &Entropy) -> Result<DoctorView, Failure> {
    let needs = Needs::of(file.into_iter().flat_map(|config| config.jobs.values()));
    let examined = examine(&address.url, &address.options, needs, Arc::new(SystemClock), entropy).await;
    examined.map_err(|error| Failure::opening(error, address.from_command_line))
}

/// The table, and below it each thing that is not well.
fn print(view: &DoctorView, console: &mut Console) -> Result<(), Failure> {
    console.print(&format!("{}\n", harmless(&view.store)))?;
    let mut grid = Grid::new(console, &["STATE", "CHECK", "FOUND"]);
    for finding in &view.findings {
        grid.row(vec![
            format::text(finding.severity.as_str()),
            format::text(&finding.check),
            format::text(&finding.found),
        ]);
    }
    grid.print(console)?;
    for Finding { check, severity, found, effect, fix } in &view.findings {
        let (Some(effect), Some(fix)) = (effect, fix) else { continue };
        console.print(&format!("\n{}: {check}: {}\n", severity.as_str(), harmless(found)))?;
        console.print(&format!("  can happen: {}\n  fix: {}\n", harmless(effect), harmless(fix)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::store::StoreOptions;

    fn address(url: &str) -> StoreAddress {
        StoreAddress { url: url.to_owned(), options: StoreOptions::default(), url_file: None, from_command_line: true }
    }

    fn shown(view: &DoctorView) -> String {
        let (mut console, out, _) = Console::captured(false);
        print(view, &mut console).unwrap();
        out.text()
    }

    #[tokio::test]
    async fn a_store_in_memory_answers_everything_and_is_told_to_be_lost_with_its_process() {
        let view = look(&address("memory"), None, &Entropy::from_system().unwrap()).await.unwrap();
        let bad: Vec<_> = view.findings.iter().filter(|finding| finding.severity > Severity::Ok).collect();
        assert_eq!(bad.iter().map(|finding| finding.check.as_str()).collect::<Vec<_>>(), ["durability"], "{bad:?}");
        assert_eq!((view.severity, view.kind), (Severity::Fault, "memory"));
    }

    #[tokio::test]
    async fn a_url_that_cannot_be_used_is_a_usage_error() {
        let refused = look(&address("nonsense://h"), None, &Entropy::from_system().unwrap()).await;
        assert_eq!(refused.err().map(|error| error.exit_code()), Some(crate::cli::ExitCode::Usage));
    }

    #[test]
    fn what_is_not_well_is_told_in_full_below_the_table() {
        let findings = vec![
            Finding::ok("reachable", "redis"),
            Finding::fault(
                "eviction",
                "maxmemory-policy allkeys-lru",
                "a slot may run twice",
                "redis.conf: noeviction",
            ),
        ];
        assert_eq!(
            shown(&DoctorView::new("redis://h".to_owned(), "redis", findings)),
            "redis://h\n\
             STATE  CHECK      FOUND\n\
             ok     reachable  redis\n\
             error  eviction   maxmemory-policy allkeys-lru\n\
             \n\
             error: eviction: maxmemory-policy allkeys-lru\n  can happen: a slot may run twice\n  fix: redis.conf: noeviction\n"
        );
    }

    #[test]
    fn away_from_a_terminal_a_finding_is_one_line_that_is_not_cut() {
        let found = "x ".repeat(100);
        let view = DoctorView::new(
            "redis://h".to_owned(),
            "redis",
            vec![Finding::warning("persistence", found.as_str(), "x", "x")],
        );
        assert_eq!(shown(&view).lines().nth(2), Some(format!("warning  persistence  {found}").trim_end()));
    }
}
