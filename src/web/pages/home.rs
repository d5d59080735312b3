//! `/`: what needs somebody, then each job in each of the last hours. Made of one snapshot; asks nobody.

use std::sync::Arc;

use askama::Template;
use chrono::{DateTime, Duration, Timelike, Utc};

use crate::admin::words::zone_name;
use crate::board::{BoardRow, HourCell, Snapshot};
use crate::slot::SlotKey;
use crate::web::pages::frame::Frame;
use crate::web::pages::listing::{Count, Listing, Sort};
use crate::web::pages::moment::{Apart, Moment, Teller};
use crate::web::pages::needs::{self, Need};
use crate::web::pages::now;
use crate::web::pages::state::Shown;
use crate::web::pages::texts::Texts;

/// The page.
#[derive(Template)]
#[template(path = "home.html")]
pub(super) struct Home {
    pub(super) frame: Frame,
    needs: Vec<Need>,
    well: String,
    calm: String,
    looked: String,
    hours_in: String,
    filled: Option<String>,
    query: String,
    query_error: Option<String>,
    sorts: [(&'static str, &'static str, bool); 3],
    counts: Vec<Count>,
    no_match: Option<String>,
    no_jobs: bool,
    grid_title: String,
    /// Cells of a row that are before the first hour.
    before: usize,
    hours: Vec<Hour>,
    rows: Vec<Arc<BoardRow>>,
    tell: Teller,
    pages: (usize, usize),
    page_words: String,
    previous: Option<String>,
    following: Option<String>,
}

/// A column.
struct Hour {
    key: String,
    label: String,
    /// Where a day begins in the reader's zone.
    day: Option<String>,
    now: bool,
}

/// A job.
struct GridRow {
    job: String,
    title: Option<String>,
    cells: Vec<CellView>,
    glyph: Option<&'static str>,
    now: String,
    next: Option<Moment>,
    next_in: Option<Apart>,
}

/// A cell.
#[derive(Debug, PartialEq, Eq)]
struct CellView {
    state: &'static str,
    number: Option<u32>,
    count: Option<u32>,
    first: bool,
    text: String,
}

impl Home {
    /// Of a snapshot. `acts` is whether the reader may act.
    pub(super) fn of(frame: Frame, shown: &Snapshot, listing: &Listing, acts: bool, tell: &Teller) -> Self {
        let t = tell.t;
        let needs = needs::lines(shown, acts, tell);
        // Somebody else may look at more.
        let before = shown.hours.len().saturating_sub(listing.hours);
        let hours = hours(shown.hours.get(before..).unwrap_or_default(), tell);
        let filled = shown.filled.min(hours.len());
        let found = listing.rows(shown);
        let rows = found.rows.iter().map(|row| Arc::clone(row)).collect();
        let all = shown.rows.len();
        let concerned: std::collections::BTreeSet<_> =
            shown.concerns.iter().filter_map(|concern| concern.job()).collect();
        let read = shown.is_read();
        let calm = if read { t.home.nothing } else { t.frame.reading };
        Self {
            well: if read { (t.home.well)(all.saturating_sub(concerned.len()), all) } else { String::new() },
            calm: calm.to_owned(),
            looked: if read { looked(shown, tell) } else { String::new() },
            hours_in: (t.time.hours_in)(&zone_in_hours(tell)),
            filled: (filled < hours.len()).then(|| (t.home.filled)(filled, hours.len())),
            query: listing.query.clone(),
            query_error: listing.error.as_ref().map(t.home.filter_error),
            sorts: Sort::ALL.map(|sort| (sort.as_str(), sort.label(t), sort == listing.sort)),
            counts: if read { listing.counts(shown, t) } else { Vec::new() },
            no_match: (all > 0 && !listing.query.is_empty()).then(|| (t.home.no_match)(&listing.query)),
            no_jobs: all == 0 && read,
            grid_title: (t.home.grid)(hours.len()),
            pages: (found.page, found.pages),
            page_words: (t.home.page)(found.page, found.pages),
            previous: (found.page > 1).then(|| listing.link(found.page - 1)),
            following: (found.page < found.pages).then(|| listing.link(found.page + 1)),
            frame,
            needs,
            before,
            hours,
            rows,
            tell: tell.clone(),
        }
    }

    /// Each is made as it is written: all of them at once are half as large as the page.
    fn grid(&self) -> impl Iterator<Item = GridRow> {
        self.rows.iter().map(|row| view(row, self.before, &self.hours, &self.tell))
    }
}

fn looked(shown: &Snapshot, tell: &Teller) -> String {
    let t = &tell.t.home;
    let failures = shown.rows.iter().filter_map(|row| row.view.latest.end.as_ref());
    let failed = failures.filter(|end| end.outcome != crate::slot::Outcome::Success).map(|end| end.at).max();
    let failure = failed.map_or_else(|| t.no_failure.to_owned(), |at| (t.last_failure)(&tell.exact(at)));
    let at = shown.read_at.unwrap_or(tell.now);
    let sign = if tell.t.tag == "en" { ", " } else { "，" };
    let end = if tell.t.tag == "en" { "." } else { "。" };
    format!("{}{sign}{failure}{end}", (t.looked)(&tell.exact(at), shown.rows.len()))
}

/// The zone of the columns, with the minutes at which its hours begin by its clocks where these are none.
fn zone_in_hours(tell: &Teller) -> String {
    let minutes = tell.zone.local(tell.now).minute() % 60;
    let off = (minutes + 60 - tell.now.minute()) % 60;
    let name = zone_name(&tell.zone);
    if off == 0 { name } else { format!("{name} (:{off:02})") }
}

fn hours(starts: &[DateTime<Utc>], tell: &Teller) -> Vec<Hour> {
    let last = starts.len().saturating_sub(1);
    let hour = |(at, start): (usize, &DateTime<Utc>)| {
        let local = tell.zone.local(*start);
        Hour {
            key: SlotKey::of(*start).map(|key| key.to_string()).unwrap_or_default(),
            label: local.format("%H").to_string(),
            day: (at == 0 || local.hour() == 0).then(|| local.format("%m-%d").to_string()),
            now: at == last,
        }
    };
    starts.iter().enumerate().map(hour).collect()
}

fn view(row: &BoardRow, before: usize, hours: &[Hour], tell: &Teller) -> GridRow {
    let now = now::of(row, tell);
    // What is paused until later does not run then.
    let runs =
        |at: &DateTime<Utc>| row.view.paused.as_ref().is_none_or(|pause| pause.until.is_some_and(|end| end <= *at));
    let next = row.view.next_tick.filter(runs);
    let cells = row.cells.iter().skip(before).zip(hours).enumerate();
    GridRow {
        job: row.view.job.to_string(),
        title: row.spec.as_ref().and_then(|spec| spec.description.clone()),
        cells: cells.map(|(at, (cell, hour))| cell_view(cell, at > 0 && hour.day.is_some(), tell.t)).collect(),
        glyph: now.0,
        now: now.1,
        next: next.map(|at| tell.coming(at)),
        next_in: next.filter(|at| *at - tell.now < Duration::hours(24)).map(|at| tell.apart(at)),
    }
}

fn cell_view(cell: &HourCell, first: bool, t: &Texts) -> CellView {
    let state = Shown::from(cell.state);
    let word = (t.words.state)(state);
    let (attempts, done, due) = (u32::from(cell.attempts), u32::from(cell.done), u32::from(cell.due));
    let many = cell.counts();
    let number = (!many && state.shows(attempts)).then_some(attempts);
    let text = match (many, number) {
        (true, _) => (t.home.cell_count)(word, done, due) + &now::unread(cell, t),
        (false, Some(attempts)) => (t.home.cell_attempts)(word, attempts),
        (false, None) => word.to_owned(),
    };
    CellView { state: state.key(), number, count: many.then_some(done), first, text }
}
