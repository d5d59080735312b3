//! Cases: what becomes of an output. The end of a run is recorded whatever its output is.

use std::time::Duration;

use crate::slot::{Lease, OutputLoss, OutputTail, RunRecord, Slot, SlotRecord, Verdict};
use crate::store::conformance::bench::{DONE, case, failed, succeeded};
use crate::store::conformance::{Bench, Case, CaseOutcome, Failure};
use crate::store::{Release, Settlement};

pub(super) const CASES: &[Case] = &[
    case!("outputs", a_megabyte_of_control_characters_is_cut_to_the_bound, L2),
    case!("outputs", chinese_output_comes_back_whole, L2),
    case!("outputs", an_end_without_its_output_says_how_long_it_was, L2),
    case!("outputs", a_success_that_is_sent_again_without_its_output_keeps_the_output, I3),
    case!("outputs", a_failure_that_is_sent_again_without_its_output_keeps_the_output),
];

/// As long as `output_limit` may be.
const LONGEST: usize = 1_024 * 1_024;

fn tail(text: &str) -> OutputTail {
    OutputTail { text: text.to_owned(), dropped_bytes: 0, loss: None }
}

/// The record of a run whose output was dropped before it was sent.
fn without_output(run: &RunRecord) -> RunRecord {
    let length = run.output.as_ref().map_or(0, |output| output.text.len() as u64);
    let output = OutputTail { text: String::new(), dropped_bytes: length, loss: Some(OutputLoss::Unanswered) };
    RunRecord { output: Some(output), ..run.clone() }
}

/// What is known of the slot without asking for outputs.
async fn inspected(bench: &Bench, slot: &Slot) -> Result<SlotRecord, Failure> {
    let (_, mut records) = bench.store.inspect(std::slice::from_ref(slot)).await?;
    records.pop().ok_or_else(|| Failure::from("no record".to_owned()))
}

async fn kept(bench: &Bench, lease: &Lease) -> Result<Option<OutputTail>, Failure> {
    Ok(bench.store.output(&lease.slot, lease.attempt, lease.token).await?)
}

async fn a_megabyte_of_control_characters_is_cut_to_the_bound(bench: &Bench) -> CaseOutcome {
    let bound = bench.store.capability().output_bytes;
    for (job, character) in [("control", '\u{1}'), ("escape", '\u{1b}')] {
        let slot = bench.slot(job)?;
        let lease = bench.grant(&slot, "a").await?;
        let text: String = std::iter::repeat_n(character, LONGEST - 4).chain("last".chars()).collect();
        let run = RunRecord { output: Some(tail(&text)), ..succeeded(&lease) };
        ensure_eq!(bench.store.complete(&lease, &run, DONE).await?, Settlement::Recorded, "{job}");
        let known = inspected(bench, &slot).await?;
        ensure_eq!(known.verdict.map(|record| record.verdict), Some(Verdict::Done));
        let kept = take!(kept(bench, &lease).await?, Some(kept) => kept);
        ensure!(
            text.ends_with(&kept.text) && kept.text.ends_with("last"),
            "the end is kept: {} bytes",
            kept.text.len()
        );
        ensure_eq!(kept.text.len() as u64 + kept.dropped_bytes, LONGEST as u64);
        ensure_eq!(kept.loss, Some(OutputLoss::TooLarge));
        // Each takes six bytes but for the last four, and no more is dropped than has to be.
        let written = (kept.text.len() - 4) * 6 + 4;
        ensure!(written <= bound && written + 6 > bound, "{written} bytes of {bound}");
    }
    Ok(())
}

async fn chinese_output_comes_back_whole(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    let run = RunRecord {
        output: Some(tail(&"备份完成：磁盘空间不足，已重试 🦀\n".repeat(1_000))),
        message: Some("命令留下了一个进程".to_owned()),
        ..succeeded(&lease)
    };
    bench.store.complete(&lease, &run, DONE).await?;
    ensure!(bench.record(&slot).await?.runs == vec![run], "another record");
    Ok(())
}

async fn an_end_without_its_output_says_how_long_it_was(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    let run = without_output(&failed(&lease));
    ensure_eq!(bench.store.fail(&lease, &run, Duration::ZERO).await?, Release::Released);
    ensure_eq!(inspected(bench, &slot).await?.runs, vec![run]);
    ensure_eq!(kept(bench, &lease).await?, None);
    Ok(())
}

async fn a_success_that_is_sent_again_without_its_output_keeps_the_output(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    let run = succeeded(&lease);
    for sent in [&run, &without_output(&run)] {
        ensure_eq!(bench.store.complete(&lease, sent, DONE).await?, Settlement::Recorded);
        ensure_eq!(bench.record(&slot).await?.runs, vec![run.clone()]);
    }
    Ok(())
}

async fn a_failure_that_is_sent_again_without_its_output_keeps_the_output(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    let run = failed(&lease);
    for sent in [&run, &without_output(&run)] {
        ensure_eq!(bench.store.fail(&lease, sent, Duration::ZERO).await?, Release::Released);
        ensure_eq!(bench.record(&slot).await?.runs, vec![run.clone()]);
    }
    Ok(())
}
