//! What the commands of a world record of themselves, on the one clock that is right; and, with it, what the checker makes of the
//! world's journals.

use std::fmt::Write;
use std::time::Duration;

use cronward::slot::Slot;

use crate::engine::Time;
use crate::faults::Fault;
use crate::history::SimulatedRun;
use crate::journals::{Besides, Judged};
use crate::nature::Nature;

/// What the checker makes of it all; none where nothing was written.
pub(super) fn check_journals(nature: &mut Nature) -> Option<Judged> {
    let journals = nature.journals.take()?;
    let besides = Besides {
        allowance: allowance(nature),
        recorded: recorded(nature),
        copied: nature.scenario.mix.has(Fault::Duplicate),
    };
    Some(journals.check(&besides))
}

fn allowance(nature: &Nature) -> Duration {
    nature.scenario.network.most * 4 + nature.scenario.end / 10_000 + Duration::from_millis(2)
}

/// A line for each run. One that is killed records no end.
fn recorded(nature: &Nature) -> String {
    let mut text = String::new();
    for (story, index, run) in nature
        .stories
        .values()
        .flat_map(|story| story.runs.iter().filter_map(move |index| Some((story, *index, nature.runs.get(*index)?))))
    {
        let millis = |at: Time| nature.scenario.instant(at).timestamp_millis();
        let before = story.runs.iter().take_while(|other| **other != index);
        let met = before.filter_map(|other| nature.runs.get(*other)).any(|other| other.overlaps(run));
        let end = run.ended.filter(|_| run.code.is_some()).map_or("null".to_owned(), |end| millis(end).to_string());
        let Some(node) = nature.scenario.nodes.get(run.by.node) else { continue };
        let _ = writeln!(
            text,
            r#"{{"job":"{}","slot":"{}","attempt":{},"fence":{},"node":"{node}","pid":{index},"start_ms":{},"end_ms":{end},"overlap":{met}}}"#,
            story.slot.job(),
            story.slot.key(),
            if run.guarded { run.attempt } else { 0 },
            fence(&story.slot, run),
            millis(run.started),
        );
    }
    text
}

fn fence(slot: &Slot, run: &SimulatedRun) -> u64 {
    slot.fence(run.attempt).0
}
