//! `cronward why J@S`: what each node decided on a slot, in order, and one sentence that says it all. Asks the store for all that is
//! known of the slot, and prints it.
//!
//! - `facts` is what is known, and puts the store's record and the nodes' decision log in one order.
//! - `explain` makes the sentence and names the command that fixes it.
//!
//! Both are pure: values in, values out. They work from the record alone where there is no decision log.

mod explain;
mod facts;
mod locks;
mod obstacle;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::format::{self, Grid, harmless};
use crate::cli::lookup::{self, SlotRef};
use crate::cli::session::StoreSession;
use crate::cli::store_args::StoreArgs;
use crate::cli::why::explain::{Explanation, explain};
use crate::cli::why::facts::{Facts, clock, timeline};
use crate::observe::view::{DecisionView, WhyView};

/// Explain why a slot ran or did not: each node's decisions in order, and a summary with the fix
///
/// Needs no daemon. Also explains slots that ended long ago, as long as the store keeps their records.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward why billing@2026-11-21T14Z")]
pub(crate) struct WhyArgs {
    /// The slot: billing@2026-11-21T14Z, billing for the current slot, billing@-1 for the previous slot
    #[arg(value_name = "JOB[@SLOT]")]
    pub(crate) slot: SlotRef,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Says why.
pub(crate) async fn why(args: &WhyArgs, console: &mut Console) -> Result<(), Failure> {
    let session = StoreSession::open(&args.store, console).await?;
    let facts = facts(&session, &args.slot, &args.store).await?;
    let (decisions, Explanation { sentence, fix }) = (timeline(&facts), explain(&facts));
    if args.output.json {
        return console.json(&view(&facts, decisions, sentence, fix));
    }
    print(&facts, &decisions, console)?;
    let mut said = format!("\n{}\n", harmless(&sentence));
    if let Some(fix) = fix {
        let _ = writeln!(said, "fix: {}", harmless(&fix));
    }
    console.print(&said)
}

/// Reads all that is known.
async fn facts(session: &StoreSession, wanted: &SlotRef, store: &StoreArgs) -> Result<Facts, Failure> {
    let (job, record) = lookup::find(session, wanted).await?;
    let pages = session.store.notes(&record.slot).await?;
    let pauses = session.store.pauses().await?;
    let (now, nodes) = session.store.nodes().await?;
    let alive = nodes.into_iter().filter(|node| node.is_alive(now)).map(|node| node.report.name);
    let ticks = job.timetable.slots(record.slot.start(), record.slot.end());
    Ok(Facts {
        tick: ticks.map(|(_, tick)| tick).next(),
        pages,
        pause: pauses.into_iter().find(|(name, _)| *name == job.entry.name).map(|(_, pause)| pause),
        job: job.entry.clone(),
        has_command: job.spec.is_some(),
        store: store.clone(),
        known_since: job.known_since,
        orphaned: job.is_nobodys(record.slot.start()),
        alive: alive.collect(),
        now: session.now,
        record,
    })
}

fn view(facts: &Facts, decisions: Vec<DecisionView>, sentence: String, fix: Option<String>) -> WhyView {
    let slot = &facts.record.slot;
    WhyView {
        job: slot.job().clone(),
        slot: slot.key().to_string(),
        start: slot.start(),
        end: slot.end(),
        state: facts.record.state(facts.now, facts.job.max_attempts),
        decisions,
        dropped: facts.pages.iter().map(|page| page.dropped).fold(0, u32::saturating_add),
        sentence,
        fix,
    }
}

/// The state, and the table.
fn print(facts: &Facts, decisions: &[DecisionView], console: &mut Console) -> Result<(), Failure> {
    let slot = &facts.record.slot;
    let state = facts.record.state(facts.now, facts.job.max_attempts);
    console.print(&format!("{slot}  {}\n", state.as_str()))?;
    let day = slot.start();
    let mut grid = Grid::new(console, &["AT", "NODE", "DECISION"]);
    for decision in decisions {
        let again = match (decision.times, decision.until) {
            (0 | 1, _) | (_, None) => String::new(),
            (times, Some(until)) => format!(" ({times} times until {})", clock(day, until)),
        };
        grid.row(vec![
            format::text(clock(day, decision.at)),
            format::maybe(decision.node.as_deref()),
            format::text(format!("{}{again}", decision.text)),
        ]);
    }
    grid.print(console)?;
    if facts.pages.is_empty() {
        console.note("no decision log for this slot; showing only what the store recorded");
    }
    let dropped = facts.pages.iter().map(|page| page.dropped).fold(0, u32::saturating_add);
    if dropped > 0 {
        console.note(format_args!("{dropped} older decisions are not kept"));
    }
    Ok(())
}
