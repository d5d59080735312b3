//! `cronward why J@S`: what each node decided on a slot, in order, and one sentence that says it all.

use std::fmt::Write;

use crate::admin::lookup::SlotRef;
use crate::admin::why::{self, Explanation, Facts, explain, timeline};
use crate::admin::words::harmless;
use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::format::{self, Grid};
use crate::cli::session;
use crate::cli::store_args::StoreArgs;
use crate::observe::view::DecisionView;

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
    let session = session::open(&args.store, console).await?;
    let facts = why::facts(&session, &args.slot, args.store.command_line()).await?;
    facts.unreadable.iter().for_each(|error| console.warn(harmless(error)));
    if args.output.json {
        return console.json(&why::view(&facts));
    }
    let (decisions, Explanation { sentence, fix }) = (timeline(&facts), explain(&facts));
    print(&facts, &decisions, console)?;
    let mut said = format!("\n{}\n", harmless(&sentence));
    if let Some(fix) = fix {
        let _ = writeln!(said, "fix: {}", harmless(&fix));
    }
    console.print(&said)
}

/// The state, and the table.
fn print(facts: &Facts, decisions: &[DecisionView], console: &mut Console) -> Result<(), Failure> {
    let slot = &facts.record.slot;
    let state = facts.record.state(facts.now, facts.job.max_attempts);
    console.print(&format!("{slot}  {}\n", state.as_str()))?;
    let mut grid = Grid::new(console, &["AT", "NODE", "DECISION"]);
    for decision in decisions {
        let again = match (decision.times, decision.until) {
            (0 | 1, _) | (_, None) => String::new(),
            (times, Some(until)) => format!(" ({times} times until {})", facts.at(until)),
        };
        grid.row(vec![
            format::text(facts.at(decision.at)),
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

#[cfg(test)]
mod tests {
    use super::*;

    use crate::admin::fixture::{self, NOON, at, node};
    use crate::admin::why::tests::{about, page};
    use crate::slot::{Decision, NotePage, Outcome, SlotRecord};

    fn lines(facts: &Facts) -> Vec<String> {
        let (mut console, out, _) = Console::captured(false);
        print(facts, &timeline(facts), &mut console).unwrap();
        out.text().lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn record_and_notes_stand_in_one_order_and_what_both_tell_stands_once() {
        let tick = Decision::Ticked { tick: at("2026-11-21T12:00:00Z") };
        let a = page(
            "a",
            &[tick.clone(), Decision::Claimed { attempt: 1 }, Decision::Started { attempt: 1, guarded: true }],
        );
        let b = page("b", &[tick, Decision::Held { by: Some(node("a")) }, Decision::Held { by: Some(node("a")) }]);
        assert_eq!(
            lines(&about(fixture::done(), NOON, vec![a, b])),
            [
                "billing@2026-11-21T12Z done",
                "AT NODE DECISION",
                "12:00:00 a scheduled for 12:00:00, tried to acquire the lease",
                "12:00:00 b scheduled for 12:00:00, tried to acquire the lease",
                "12:00:00 a claimed attempt 1 (schedule)",
                "12:00:01 b held by a (2 times until 12:00:02)",
                "12:00:01 a attempt 1 ended: success",
                "12:00:02 a recorded the verdict done",
            ]
        );
    }

    #[test]
    fn a_node_with_another_definition_of_the_job_is_told_of() {
        let odd = NotePage { job_hash: Some("other".to_owned()), ..page("b", &[Decision::Exhausted]) };
        let pages = vec![page("a", &[Decision::Exhausted]), odd, page("c", &[Decision::Exhausted])];
        let told = lines(&about(fixture::failed(), NOON, pages));
        let differs: Vec<_> = told.iter().filter(|line| line.contains("different definition")).collect();
        assert_eq!(differs, ["12:00:00 b has a different definition of the job than a"]);
    }

    #[test]
    fn a_node_whose_own_definition_has_changed_meanwhile_does_not_differ_from_itself() {
        let before = NotePage { job_hash: Some("before".to_owned()), ..page("a", &[Decision::Exhausted]) };
        let told = lines(&about(fixture::failed(), NOON, vec![page("a", &[Decision::Exhausted]), before]));
        assert!(told.iter().all(|line| !line.contains("different definition")), "{told:#?}");
    }

    #[test]
    fn away_from_a_terminal_no_text_is_cut() {
        let away = Decision::StoreAway { message: "x".repeat(160) };
        let facts = about(fixture::failed(), NOON, vec![page("node-eu-1-hourly", &[away])]);
        let (mut console, out, _) = Console::captured(false);
        print(&facts, &timeline(&facts), &mut console).unwrap();
        assert!(out.text().contains(&format!("store unavailable: {}\n", "x".repeat(160))), "{}", out.text());
    }

    #[test]
    fn a_crashed_run_is_told_with_its_claim() {
        let crashed = SlotRecord { attempts: 1, runs: vec![fixture::begun(1, "a")], ..fixture::untouched() };
        let told = lines(&about(crashed, NOON, vec![]));
        assert_eq!(told.last().unwrap(), "12:00:00 a claimed attempt 1 (schedule); crashed");
        assert_eq!(Outcome::Crashed.as_str(), "crashed");
    }
}
