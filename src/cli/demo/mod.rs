//! `cronward demo`: a cluster of three real nodes in one terminal, for half a minute. At its end the journals of the nodes, with the
//! kill as the fault that was injected, go to the checker.
//!
//! - `script`: the jobs, and when their slots begin. Pure.
//! - `cluster`: the folder with the embedded store, and the nodes, which are processes of this very program.
//! - `stage`: follows the journals and the store, shows both in words, and kills the node that holds a lease.
//!
//! Nothing in it is staged but the schedule: the nodes run as `cronward run` does, one is killed with SIGKILL, and the checker
//! is that of `cronward verify`. It meets no file and no store but its own.

mod cluster;
mod script;
mod stage;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::admin::words::brief;
use crate::cli::console::Console;
use crate::cli::demo::cluster::{Cluster, Node};
use crate::cli::demo::script::Script;
use crate::cli::demo::stage::{Kill, Stage};
use crate::cli::failure::Failure;
use crate::clock::{Clock, SystemClock};
use crate::drive::Entropy;
use crate::store::{self, EMBEDDED, StoreOptions};
use crate::verify::{Class, Inputs, Report, check};

/// Run three nodes in one terminal for half a minute: a failure, a killed node, the takeover, and the checker's verdict
///
/// The nodes are real processes on an embedded store in a temporary folder, which is removed at the end. Nothing else changes.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward demo")]
pub(crate) struct DemoArgs {
    /// Keep the folder with the store, the journals and the logs, and print its path
    #[arg(long)]
    pub(crate) keep: bool,
    /// Serve the dashboard of each node, print the addresses, and go on until Ctrl-C; then comes the verdict
    #[cfg(feature = "http")]
    #[arg(long)]
    pub(crate) web: bool,
    /// No colour; NO_COLOR in the environment does the same
    #[arg(long)]
    pub(crate) no_color: bool,
}

/// What a shell adds to the number of a signal.
const SIGNALLED: u8 = 128;

/// Plays it to its end, or until somebody interrupts: then too nothing is left behind.
pub(crate) async fn demo(args: &DemoArgs, console: &mut Console) -> Result<(), Failure> {
    let mut signals = EndSignals::listen()?;
    let entropy = Entropy::from_system().map_err(|error| Failure::Internal(format!("no random source: {error}")))?;
    // Dropped last, whatever happens: it ends what it started.
    let mut cluster = Cluster::prepare(&entropy.token().to_string(), args.keep, args.web())?;
    if args.keep {
        console.note(format_args!("everything is kept in {}", cluster.folder().display()));
    }
    let mut stage = prepare(&mut cluster).await?;
    let number = tokio::select! {
        played = stage.play(console) => { played?; None }
        number = signals.next() => Some(number),
    };
    if let Some(number) = number {
        return Err(Failure::Child(SIGNALLED + number));
    }
    if args.web() && stage.has_struck() {
        console.print("\nthe nodes go on, and so does the dashboard: press Ctrl-C for the verdict\n")?;
        console.flush()?;
        // Whoever looks at pages ends it, and is told the verdict all the same.
        tokio::select! {
            went_wrong = stage.linger(console) => went_wrong?,
            _ = signals.next() => {}
        }
    }
    let kill = tokio::select! {
        kill = stage.finish(console) => kill?,
        number = signals.next() => return Err(Failure::Child(SIGNALLED + number)),
    };
    let report = judge(&cluster.nodes, cluster.folder(), &kill)?;
    tell(&report, console)
}

impl DemoArgs {
    /// Whether the dashboard is served.
    const fn web(&self) -> bool {
        #[cfg(feature = "http")]
        return self.web;
        #[cfg(not(feature = "http"))]
        false
    }
}

/// The signals that end it.
struct EndSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl EndSignals {
    fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(|error| Failure::Internal(format!("cannot take signals: {error}")));
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// The number of the next one.
    async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => 2,
            _ = self.terminate.recv() => 15,
        }
    }
}

/// Opens the store and starts the nodes.
async fn prepare(cluster: &mut Cluster) -> Result<Stage<'_>, Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let url = format!("{EMBEDDED}:{}", cluster.store());
    let options = StoreOptions { op_timeout: Duration::from_secs(5), ..StoreOptions::default() };
    let opened = store::open_with_clock(&url, options, Arc::clone(&clock)).await;
    let store = opened.map_err(|error| Failure::opening(error, true))?;
    let script = Script::beginning(clock.now().wall)?;
    store.register(&script.entries()).await?;
    cluster.start(&script.file(&cluster.store()))?;
    Ok(Stage::new(script, cluster, store, clock))
}

/// The file of faults, as `cronward verify --faults` takes it.
const FAULTS: &str = "faults.jsonl";
/// The machine is somebody's, and does other things besides: a late process is no fault of the guard. Less than a lease.
const ALLOWANCE: Duration = Duration::from_secs(2);

/// Judges what the nodes wrote.
fn judge(nodes: &[Node], folder: &Path, kill: &Kill) -> Result<Report, Failure> {
    let mut journals = Vec::new();
    for node in nodes {
        let name = format!("{}.jsonl", node.name);
        let text = std::fs::read_to_string(&node.journal).map_err(|error| unreadable(&name, &error))?;
        journals.push((name, text));
    }
    let fault = serde_json::json!({ "at": kill.at, "kind": "kill", "target": kill.node }).to_string() + "\n";
    // Only for whoever keeps the folder.
    let _ = std::fs::write(folder.join(FAULTS), &fault);
    judge_texts(&journals, &fault)
}

fn judge_texts(journals: &[(String, String)], fault: &str) -> Result<Report, Failure> {
    let mut inputs = Inputs::default();
    inputs.allowance = ALLOWANCE;
    for (name, text) in journals {
        inputs.journal(name, text).map_err(|error| unreadable(name, &error))?;
    }
    inputs.faults(FAULTS, fault).map_err(|error| unreadable(FAULTS, &error))?;
    Ok(check(inputs))
}

fn unreadable(name: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::Internal(format!("the demo's {name}: {error}"))
}

/// Writes what was found. Fails when something is wrong in it.
fn tell(report: &Report, console: &mut Console) -> Result<(), Failure> {
    console.print(&format!(
        "\nwhat `cronward verify --allowance {}` says of the three journals:\n\n{report}\n",
        brief(ALLOWANCE)
    ))?;
    console.print(&format!("verdict: {}\n", sentence(report)))?;
    if report.is_clean() { Ok(()) } else { Err(Failure::Found) }
}

/// The whole in one line.
fn sentence(report: &Report) -> String {
    if !report.is_clean() {
        return format!("{} unexplained, {} violations", report.unexplained.len(), report.violations.len());
    }
    let of = |class| report.tally(class).slots;
    let (once, again) = (of(Class::Once), of(Class::Repeat));
    let (lost, overlapped) = match (of(Class::Lost), of(Class::Overlap)) {
        (0, 0) => {
            return format!("{once} slots done by one run, {again} by another after it, each for a reason; none lost");
        }
        other => other,
    };
    format!(
        "{once} slots done by one run, {again} by another after it, {overlapped} by two at once, {lost} not done, each for a reason"
    )
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

    use super::*;

    /// A run that fails on `a`, and one on `b` so many milliseconds after that.
    fn retried_after(wait_ms: i64) -> Report {
        let start: DateTime<Utc> = "2026-11-21T14:00:00Z".parse().unwrap();
        let line = |node: &str, ms: i64, fact: &str| {
            let at = (start + TimeDelta::milliseconds(ms)).to_rfc3339_opts(SecondsFormat::Millis, true);
            let fact = fact.replace("AT", &at);
            format!("{{\"at\":\"{at}\",\"node\":\"{node}\",\"instance\":\"{node}\",{fact}}}\n")
        };
        let slot = r#""job":"flaky","slot":"2026-11-21T14Z","slot_end":"2026-11-21T14:00:12Z","#;
        let run = |node: &str, ms: i64, attempt: u8, outcome: &str| {
            let granted = r#""granted_at":"AT","trigger":"schedule","max_attempts":3,"lease_ttl_s":3.0,"retry_delay_s":1.0,"on_lost":"continue""#;
            [
                format!(r#"{slot}"event":"granted","attempt":{attempt},"used":{attempt},"token":"{node}",{granted}"#),
                format!(r#"{slot}"event":"run_started","attempt":{attempt},"fence":{attempt},"trigger":"retry","guarded":true"#),
                format!(r#"{slot}"event":"run_ended","attempt":{attempt},"outcome":"{outcome}","duration_s":0.0"#),
                format!(r#"{slot}"event":"settled","attempt":{attempt},"outcome":"{outcome}""#),
            ]
            .map(|fact| line(node, ms, &fact))
            .concat()
        };
        let journal = |node: &str, run: String| {
            let here = r#""event":"started","jobs":1"#;
            let lines = [line(node, -5_000, here), line(node, -4_000, r#""event":"store_reached""#), run];
            let end = line(node, 60_000, r#""event":"reload_refused","error":"x""#);
            (format!("{node}.jsonl"), lines.concat() + &end)
        };
        let journals = [journal("a", run("a", 100, 1, "failure")), journal("b", run("b", 100 + wait_ms, 2, "success"))];
        judge_texts(&journals, "").unwrap()
    }

    #[test]
    fn a_machine_that_does_other_things_too_is_no_violation_and_a_retry_that_stays_away_is_one() {
        let [soon, busy, away] = [1_000, 2_900, 3_500].map(retried_after);
        assert!(soon.is_clean() && busy.is_clean(), "{soon}\n{busy}");
        assert_eq!(soon.tally(Class::Repeat).slots, 1, "{soon}");
        assert_eq!(away.violations.iter().map(|finding| finding.rule).collect::<Vec<_>>(), ["late-recovery"], "{away}");
    }

    #[test]
    fn the_verdict_is_one_sentence() {
        let mut report = Report::default();
        for (class, slots) in [("once", 3), ("repeat", 3)] {
            report.classes.insert(class, crate::verify::Tally { slots, explained: 0, unexplained: 0 });
        }
        assert_eq!(sentence(&report), "3 slots done by one run, 3 by another after it, each for a reason; none lost");
        report.classes.insert("lost", crate::verify::Tally { slots: 1, explained: 1, unexplained: 0 });
        assert!(sentence(&report).contains("1 not done"));
    }
}
