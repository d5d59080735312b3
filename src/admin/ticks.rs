//! The ticks to come of some jobs, the soonest first.

use chrono::{DateTime, SecondsFormat, Utc};

use crate::admin::KnownJob;
use crate::observe::view::TickView;
use crate::schedule::DstNote;

/// How a language says what a change of the clock does to ticks.
pub(crate) type NoteText = fn(&DstNote) -> String;

/// The first `count` ticks of all the jobs together after an instant, as commands tell them.
pub(crate) fn soonest(jobs: &[&KnownJob], from: DateTime<Utc>, count: usize) -> Vec<TickView> {
    soonest_in(jobs, from, count, DstNote::to_string)
}

/// The same in a language.
pub(crate) fn soonest_in(jobs: &[&KnownJob], from: DateTime<Utc>, count: usize, note: NoteText) -> Vec<TickView> {
    let mut ticks: Vec<TickView> = jobs.iter().flat_map(|job| ticks_of(job, from, count, note)).collect();
    ticks.sort_by(|a, b| a.tick.cmp(&b.tick).then_with(|| a.job.cmp(&b.job)));
    ticks.truncate(count);
    ticks
}

fn ticks_of(job: &KnownJob, from: DateTime<Utc>, count: usize, text: NoteText) -> Vec<TickView> {
    let zone = job.timetable.schedule().zone();
    let view = |tick: DateTime<Utc>| {
        let local = zone.local(tick).to_rfc3339_opts(SecondsFormat::AutoSi, true);
        Some(TickView::of(&job.timetable.slot_of(tick)?, tick, local, Vec::new()))
    };
    let mut views: Vec<TickView> = job.timetable.schedule().ticks_after(from).take(count).filter_map(view).collect();
    // What a change of the clock does is told at the first tick that comes at or after it.
    let last = views.last().map_or(from, |view| view.tick);
    for note in job.timetable.dst_notes(from, last) {
        if let Some(view) = views.iter_mut().find(|view| view.tick >= note.at) {
            view.notes.push(text(&note));
        }
    }
    views
}
