//! Runs simulated clusters: `make sim`, or `cargo run --release --package simulate -- --seeds 0..10000`.
//!
//! `--seed N` runs one world, `--trace` shows every step of it. A world that breaks a promise is cut down to the smallest
//! one that still does; its whole history is shown, and the command that shows it again. `--nodes`, `--jobs`, `--periods` and `--faults a,b` cut a world down by hand.

#![allow(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods, reason = "a program for developers")]

mod args;
mod batch;
mod history;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::process::ExitCode;
use std::time::Instant;

use args::Args;
use batch::Batch;
use simulate::{
    Bug, Check, Control, JUDGED, LOCKS_FROM, OUTPUTS_FROM, Options, WorldOutcome, control, is_short, run, shrink,
};

/// Worlds in which the checker of journals judges what the nodes wrote, besides the simulator's own judge. With `--journals`
/// it is asked in all of them; about one in a thousand then shows a clock that the lines tell too badly.
const JOURNALS: u64 = 1_000;
/// The same of those from [`LOCKS_FROM`] on.
const LOCK_JOURNALS: u64 = 400;

fn main() -> ExitCode {
    let args = match args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(error) => {
            eprintln!("{error}\n{}", args::USAGE);
            return ExitCode::from(2);
        }
    };
    match simulate(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Whether every promise was kept, dead nodes were followed in time, and every bug found.
fn simulate(args: &Args) -> Result<bool, String> {
    let mut batch = worlds(args)?;
    batch.print();
    for bug in Bug::ALL.iter().copied().filter(|_| args.controls) {
        match control(bug, bug.within()).map_err(|error| error.to_string())? {
            Some(found) => {
                let (check, text) = (found.finding.check, &found.finding.text);
                println!("{bug:?}: found by {check:?} in world {}, after {} slots: {text}", found.seed, found.slots);
                println!("  by the journals: {}", by_journals(&found));
                batch.controls.push(found);
            }
            None => {
                println!("{bug:?}: not found within {} worlds", bug.within());
                batch.missed.push(bug);
            }
        }
    }
    if let Some(path) = &args.json {
        batch.write(path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if !batch.recovers_in_time() {
        println!("a dead node was not followed in time");
    }
    Ok(batch.broken == 0 && batch.missed.is_empty() && batch.recovers_in_time())
}

fn by_journals(found: &Control) -> String {
    match &found.judged {
        Some((seed, text)) => format!("found in world {seed}: {text}"),
        None => format!("nothing within {JUDGED} worlds"),
    }
}

fn worlds(args: &Args) -> Result<Batch, String> {
    let begun = Instant::now();
    let (kept, fresh) = seeds(args);
    let mut batch = Batch { fresh_from: fresh.start, ..Batch::default() };
    for seed in kept.chain(fresh) {
        if batch.summary.classes.slots >= args.slots {
            break;
        }
        let options = Options { journals: args.options.journals || is_judged(seed), ..args.options };
        let outcome = run(seed, &options).map_err(|error| format!("seed {seed}: {error}"))?;
        batch.add(seed, &outcome.summary);
        batch.disagreements += u64::from(disagree(&outcome));
        outcome.trace.iter().for_each(|line| println!("{line}"));
        if let Some(judged) = outcome.judged.filter(|_| args.options.trace) {
            println!("{}", judged.report);
        }
        if let Some(finding) = outcome.finding {
            batch.broken += 1;
            println!("seed {seed}: {finding}");
            if args.shrink {
                report_smallest(seed, options, finding.check, args.lines);
            }
            if !args.keep_going {
                break;
            }
        }
    }
    batch.took = begun.elapsed();
    Ok(batch)
}

/// Without jobs that name locks, and with them. Of slots that are shorter than their outages the lines tell too little.
fn is_judged(seed: u64) -> bool {
    seed < JOURNALS || ((LOCKS_FROM..LOCKS_FROM + LOCK_JOURNALS).contains(&seed) && !is_short(seed))
}

/// The seeds that are the same each time, and those that were drawn anew. These are told at once, so that a batch that is cut
/// short can be repeated as well.
fn seeds(args: &Args) -> (Range<u64>, Range<u64>) {
    let kept = args.seeds.clone();
    if !args.fresh {
        return (kept, u64::MAX..u64::MAX);
    }
    let kept = if kept.end == u64::MAX { kept.start..JOURNALS } else { kept };
    // Forty bits: short enough to be typed, and far from those that were ever tried. Half of their worlds have jobs that name locks, half output that the store refuses.
    let first = kept.end.max(OUTPUTS_FROM).saturating_add(RandomState::new().build_hasher().finish() >> 24);
    println!("worlds {}..{}, then fresh ones from the seed {first} on", kept.start, kept.end);
    (kept, first..u64::MAX)
}

/// The checker of journals complains of what the world's own judge calls clean, or explains what breaks a promise.
fn disagree(outcome: &WorldOutcome) -> bool {
    let Some(judged) = &outcome.judged else { return false };
    let broken = outcome.finding.as_ref().is_some_and(|finding| finding.check != Check::Journals);
    broken != judged.text.is_some()
}

/// The shortest history that still breaks a promise, and how to see it again.
fn report_smallest(seed: u64, options: Options, check: Check, lines: usize) {
    let smallest = shrink(seed, Options { trace: false, ..options }, check).options;
    let Ok(outcome) = run(seed, &Options { trace: true, ..smallest }) else { return };
    let finding = outcome.finding.map(|finding| finding.to_string()).unwrap_or_default();
    println!("  smallest: {finding}");
    println!("  again: {}", args::replay(seed, &smallest));
    history::show(seed, &outcome.trace, lines);
}
