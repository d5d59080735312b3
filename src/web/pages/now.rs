//! How a job stands now, in a few words: the column NOW.

use std::time::Duration;

use chrono::{DurationRound, TimeDelta};

use crate::board::{BoardRow, CellState, HourCell};
use crate::observe::view::{NoStart, SlotView};
use crate::slot::SlotState;
use crate::web::pages::moment::Teller;
use crate::web::pages::state::Shown;
use crate::web::pages::texts::Texts;

/// Its glyph, where it has one, and the words.
pub(super) fn of(row: &BoardRow, tell: &Teller) -> (Option<&'static str>, String) {
    let (t, view) = (&tell.t.needs, &row.view);
    if view.orphaned {
        return (None, t.orphaned.to_owned());
    }
    if !view.enabled {
        return (Some(Shown::Disabled.key()), t.disabled.to_owned());
    }
    if let Some(pause) = &view.paused {
        let until = pause.until.map(|until| (t.paused_until)(&tell.coming(until).text));
        return (Some(Shown::Skipped.key()), until.unwrap_or_else(|| t.paused.to_owned()));
    }
    let Some(slot) = &view.current else {
        return match row.cells.last().map(|cell| cell.state) {
            Some(CellState::NotRead) => (Some(Shown::Loading.key()), tell.t.frame.reading.to_owned()),
            Some(CellState::Unknown) => (Some(Shown::Unknown.key()), (tell.t.words.state)(Shown::Unknown).to_owned()),
            _ => (None, (tell.t.words.state)(Shown::NotDue).to_owned()),
        };
    };
    if let Some(why @ (NoStart::NoNode | NoStart::NoLiveNode)) = view.no_start {
        return (Some(Shown::from(slot.state).key()), (tell.t.actions.no_start)(why).to_owned());
    }
    if let (Some(NoStart::NotDue), Some(since)) = (view.no_start, view.first_seen) {
        return (None, (t.not_due_before)(&tell.coming(since).text));
    }
    if let Some(cell) = row.cells.last().filter(|cell| cell.counts()) {
        let since = tell.exact(tell.now.duration_trunc(TimeDelta::hours(1)).unwrap_or(slot.start));
        let count = (t.count_in)(cell.done.into(), cell.due.into(), &since);
        return (Some(Shown::from(cell.state).key()), count + &unread(cell, tell.t));
    }
    // Its tick is to come: the slot has begun, and is not due.
    let waits = row.cells.iter().any(|cell| cell.state == CellState::Pending);
    if slot.state == SlotState::Pending && !waits && row.cells.last().is_some_and(|c| c.state == CellState::NotDue) {
        return (None, t.not_due.to_owned());
    }
    if row.is_too_late() {
        return (Some(Shown::Missed.key()), t.too_late.to_owned());
    }
    let shown = Shown::from(slot.state);
    (Some(shown.key()).filter(|_| slot.start <= tell.now), words(slot, tell))
}

/// How many slots of an hour were not read yet, after what is said of the others; nothing where all were.
pub(super) fn unread(cell: &HourCell, t: &Texts) -> String {
    if cell.unread == 0 { String::new() } else { (t.home.unread)(cell.unread.into()) }
}

fn words(slot: &SlotView, tell: &Teller) -> String {
    let t = &tell.t.needs;
    let start = tell.exact(slot.start);
    match slot.state {
        SlotState::Running => {
            let node = slot.lease.as_ref().map(|lease| lease.node.to_string()).unwrap_or_default();
            match slot.runs.last() {
                Some(run) => (t.running_since)(&node, &tell.exact(run.started)),
                None => (t.running_on)(&node),
            }
        }
        SlotState::Retrying => match slot.retry_in_s {
            Some(seconds) => (t.retry_in)(&tell.span(Duration::from_secs_f64(seconds.clamp(1.0, 1e9).ceil()))),
            None => t.retry_soon.to_owned(),
        },
        SlotState::Failed => t.nobody_tries.to_owned(),
        SlotState::Missed if slot.attempts > 0 => (t.missed_after_at)(&start, slot.attempts, slot.max_attempts),
        SlotState::Missed => (t.missed_at)(&start),
        SlotState::Skipped => (t.skipped_at)(&start),
        SlotState::Done => (t.done_at)(&start),
        SlotState::Pending if slot.start > tell.now => t.not_due.to_owned(),
        SlotState::Pending => t.waiting.to_owned(),
    }
}
