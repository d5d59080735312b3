//! The pages of one job, one slot, one run, of the locks and of the store itself: each asks the store for what the board does not keep,
//! a few at once, with what a page shows as the bound.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Redirect, Response};
use chrono::{DateTime, Utc};

use crate::admin::actions::Verb;
use crate::admin::command_line::CommandLine;
use crate::admin::lookup::{self, SlotRef, SlotRefError};
use crate::admin::ticks::{self, NoteText};
use crate::admin::{AdminError, AdminSession, KnownJob, why};
use crate::clock::later;
use crate::job::{JobName, Namespace};
use crate::observe::view::{LockView, PauseView, SlotView, TickView};
use crate::resource::LockRecord;
use crate::schedule::Timetable;
use crate::slot::{Slot, SlotKey, SlotRecord};
use crate::store::{Finding, client_command, where_kept};
use crate::web::asking::Asking;
use crate::web::detail::ProblemDetail;
use crate::web::pages::cluster::{LocksPage, StorePage};
use crate::web::pages::job::{self, JobMaterial, JobPage};
use crate::web::pages::request::PageRequest;
use crate::web::pages::slot::{RunPage, SlotMaterial, SlotPage};
use crate::web::pages::state::JudgedSlot;
use crate::web::parts::AddressParts;
use crate::web::problem::Problem;
use crate::web::site::{Site, Sources};
use crate::web::{csrf, form};

/// Slots on the page of a job.
const SLOTS: usize = 60;
/// Scheduled times to come on it.
const TICKS: usize = 5;
/// How far back a slot is looked for.
const HORIZON: Duration = Duration::from_secs(5 * 366 * 86_400);
const HOUR: Duration = Duration::from_secs(3_600);

/// `/jobs/{job}`.
pub(in crate::web) async fn job(
    ask: PageRequest,
    AddressParts(job): AddressParts<String>,
) -> Result<Response, Problem> {
    let name = named(&job)?;
    let shown = ask.site.sources.board.read(0).await;
    let look = ask.site.reads.begin(&ask.site.sources.store).await?;
    let known = look.session.catalog.find(&name)?;
    let hour = ask.asked("hour").and_then(|key| key.parse::<SlotKey>().ok()).map(SlotKey::start);
    let slots = match (hour, ask.asked("before").and_then(|key| key.parse::<SlotKey>().ok())) {
        (Some(hour), _) => of_hour(&known.timetable, hour),
        (None, Some(before)) => known.timetable.slot_with_key(before).map_or_else(Vec::new, |slot| older(known, &slot)),
        (None, None) => newest(known, look.session.now),
    };
    let more = hour.is_none() && slots.len() == SLOTS;
    let last = slots.last().filter(|_| more).map(|slot| format!("/jobs/{name}?before={}", slot.key()));
    let records = look.session.inspect_each(&slots).await?;
    let AdminSession { now, retention, .. } = *look.session;
    let unreadable = records.iter().filter_map(|record| Some(record.as_ref().err()?.to_string())).collect();
    let judged = records.iter().flatten().map(|record| JudgedSlot::of(known, record, now, retention)).collect();
    let mut row = Arc::clone(shown.row(name.as_str()).ok_or_else(Problem::not_found)?);
    let mut did = None;
    if let Some(word) = ask.asked("did") {
        // What was done a moment ago the board may not have heard of, and it may be later than the time that was read.
        let pauses = look.session.store.pauses().await.map_err(AdminError::from)?;
        let pause = pauses.into_iter().find(|(job, _)| *job == name).map(|(_, pause)| pause);
        did = job::recorded(word, pause.as_ref(), now, ask.reader.t);
        let lasting = pause.filter(|pause| pause.ended.is_none());
        Arc::make_mut(&mut row).view.paused = lasting.and_then(|pause| PauseView::of(&pause, now));
    }
    let material = JobMaterial {
        row: &row,
        timetable: &known.timetable,
        slots: judged,
        unreadable,
        ticks: ahead(known, look.session.now, ask.reader.t.job.clock_change),
        hour,
        older: last,
        did,
        acts: ask.acts() && shown.takes_changes(),
    };
    let frame = ask.frame(&shown, "hours", name.as_str());
    ask.page(&JobPage::of(frame, &shown, material, &ask.tell(&shown)))
}

/// `/jobs/{job}/{slot}`.
pub(in crate::web) async fn slot(
    ask: PageRequest,
    AddressParts((job, slot)): AddressParts<(String, String)>,
) -> Result<Response, Problem> {
    let wanted = reference(&format!("{job}@{slot}"))?;
    let shown = ask.site.sources.board.look(0);
    let look = ask.site.reads.begin(&ask.site.sources.store).await?;
    let line =
        ask.site.sources.operations.as_ref().map_or_else(CommandLine::default, |operations| operations.line.clone());
    let mut facts = why::facts(&look.session, &wanted, line).await?;
    let unreadable = look.session.read_outputs(&mut facts.record).await?;
    facts.unreadable.extend(unreadable.map(|error| error.to_string()));
    facts.zone = Some(ask.reader.zone.clone());
    let known = look.session.catalog.find(facts.record.slot.job())?;
    let spec = shown.row(facts.record.slot.job().as_str()).and_then(|row| row.spec.clone());
    let takes_changes = shown.takes_changes();
    let offered = if ask.acts() && takes_changes { Verb::offered(known, &facts.record, facts.now) } else { &[] };
    let material = SlotMaterial {
        slot: JudgedSlot {
            paused: facts.pause.as_ref().is_some_and(|pause| pause.remaining(facts.now).is_some()),
            ..JudgedSlot::of(known, &facts.record, facts.now, facts.retention)
        },
        spec: spec.as_deref(),
        previous: known.timetable.older(&facts.record.slot, HORIZON, 1).pop().map(|slot| slot.key().to_string()),
        following: following(known, &facts.record.slot, facts.now).map(|slot| slot.key().to_string()),
        did: ask.asked("did").map(|verb| (verb.to_owned(), ask.asked("at").and_then(moment))),
        acts: offered.iter().map(|verb| verb.as_str()).collect(),
        acts_off: ask.acts() && !takes_changes,
        kept: at_store(&ask.site, &facts.record.slot, where_kept).unwrap_or_default(),
        client_command: at_store(&ask.site, &facts.record.slot, client_command).unwrap_or_default(),
        facts: &facts,
    };
    let frame = ask.frame(&shown, "hours", facts.record.slot.to_string());
    ask.page(&SlotPage::of(frame, material, &ask.tell(&shown)))
}

/// Seconds since 1970.
fn moment(text: &str) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(text.parse().ok()?, 0)
}

/// What a person with the store's own client has to know of a slot.
fn at_store<T>(site: &Site, slot: &Slot, what: fn(&str, &str, &Namespace, &Slot) -> T) -> Option<T> {
    let Sources { scheme, store, namespace, .. } = &site.sources;
    let namespace = Namespace::new(namespace.as_str()).ok()?;
    Some(what(scheme, store.location(), &namespace, slot))
}

/// `/jobs/{job}/{slot}/runs/{attempt}`; with `?raw` the text alone.
pub(in crate::web) async fn run(
    ask: PageRequest,
    AddressParts((job, slot, attempt)): AddressParts<(String, String, u32)>,
) -> Result<Response, Problem> {
    let wanted = reference(&format!("{job}@{slot}"))?;
    let shown = ask.site.sources.board.look(0);
    let look = ask.site.reads.begin(&ask.site.sources.store).await?;
    let (known, mut record) = lookup::find(&look.session, &wanted).await?;
    let of_slot = record.slot.clone();
    for run in record.runs.iter_mut().filter(|run| run.attempt == attempt) {
        look.session.read_output(&of_slot, run).await?;
    }
    if ask.asked("raw").is_some() {
        return raw(&record, attempt);
    }
    let view = SlotView::of(&record, look.session.now, known.entry.max_attempts);
    let frame = ask.frame(&shown, "hours", format!("{of_slot} #{attempt}"));
    let page = RunPage::of(frame, &view, attempt, &ask.tell(&shown)).ok_or_else(Problem::not_found)?;
    ask.page(&page)
}

/// What a command wrote, byte for byte as it was kept, in a document that may do nothing.
fn raw(record: &SlotRecord, attempt: u32) -> Result<Response, Problem> {
    let run = record.runs.iter().find(|run| run.attempt == attempt).ok_or_else(Problem::not_found)?;
    let text = run.output.as_ref().map(|output| output.text.clone()).unwrap_or_default();
    // Names and keys have no character that a header has to have quoted.
    let file =
        format!("inline; filename=\"{}-{}-{attempt}.txt\"", record.slot.job(), record.slot.key()).replace(':', "");
    let file = HeaderValue::try_from(file).map_err(|_| Problem::not_found())?;
    let mut response = ([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response();
    response.headers_mut().insert(CONTENT_DISPOSITION, file);
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    Ok(response)
}

/// `/go?at=billing@-1`, as commands read it; `/go?job=J&hour=KEY`, as the grid asks.
pub(in crate::web) async fn go(ask: PageRequest) -> Result<Response, Problem> {
    let look = ask.site.reads.begin(&ask.site.sources.store).await?;
    let path = match (ask.asked("at"), ask.asked("job"), ask.asked("hour")) {
        (Some(at), _, _) => {
            let (_, record) = lookup::find(&look.session, &reference(at)?).await?;
            path(&record.slot)
        }
        (None, Some(job), Some(hour)) => {
            let known = look.session.catalog.find(&named(job)?)?;
            let key: SlotKey = hour.parse().map_err(|_| Problem::not_found())?;
            match &*of_hour(&known.timetable, key.start()) {
                [one] => path(one),
                [] => known.timetable.slot_at(key.start()).map_or_else(|| format!("/jobs/{job}"), |slot| path(&slot)),
                _ => format!("/jobs/{job}?hour={key}"),
            }
        }
        _ => return Err(Problem::bad_request(ProblemDetail::GoWhere)),
    };
    Ok(Redirect::to(&format!("{}{path}", ask.setting.base)).into_response())
}

/// `/locks`.
pub(in crate::web) async fn locks(ask: PageRequest) -> Result<Response, Problem> {
    let shown = ask.site.sources.board.look(0);
    let tell = ask.tell(&shown);
    let look = ask.site.reads.begin(&ask.site.sources.store).await?;
    let kept = Arc::clone(&look.session.store).lock_store();
    let views = match &kept {
        None => None,
        Some(locks) => {
            let (now, records) = locks.locks(&[]).await.map_err(AdminError::from)?;
            let in_use: Vec<LockRecord> = records.into_iter().filter(|record| !record.entries.is_empty()).collect();
            Some(LockView::all(&in_use, now))
        }
    };
    let frame = ask.frame(&shown, "locks", ask.reader.t.frame.locks);
    ask.page(&LocksPage::of(frame, views.as_deref(), &tell))
}

/// `/store`.
pub(in crate::web) async fn store(ask: PageRequest) -> Result<Response, Problem> {
    store_page(&ask, None).await
}

/// `POST /store`: what `cronward doctor` finds. It writes trial records and removes them.
pub(in crate::web) async fn examine(
    ask: PageRequest,
    Extension(asking): Extension<Asking>,
    body: Bytes,
) -> Result<Response, Problem> {
    let [token] = form::fields(&body, ["token"]);
    csrf::check_form(&asking.bearer, &token)?;
    let examiner = ask.site.examiner.as_ref().ok_or_else(Problem::not_found)?;
    let (peer, user) = (asking.peer.0, &*asking.bearer.name);
    tracing::info!(%peer, user, "an operator asked over HTTP for the store to be examined");
    let found = examiner.examine().await?;
    store_page(&ask, Some(found.findings)).await
}

async fn store_page(ask: &PageRequest, findings: Option<Vec<Finding>>) -> Result<Response, Problem> {
    let shown = ask.site.sources.board.read(0).await;
    let frame = ask.frame(&shown, "store", ask.reader.t.frame.store);
    let may = ask.acts() && ask.site.examiner.is_some();
    let capability = ask.site.sources.store.capability();
    ask.page(&StorePage::of(frame, &shown, &capability, findings, may, &ask.tell(&shown)))
}

fn named(job: &str) -> Result<JobName, Problem> {
    JobName::new(job).map_err(Problem::unknown)
}

fn reference(text: &str) -> Result<SlotRef, Problem> {
    text.parse().map_err(|error: SlotRefError| Problem::unknown(error))
}

fn path(slot: &Slot) -> String {
    format!("/jobs/{}/{}", slot.job(), slot.key())
}

fn of_hour(timetable: &Timetable, hour: DateTime<Utc>) -> Vec<Slot> {
    let mut slots: Vec<Slot> = timetable.slots(hour, later(hour, HOUR)).map(|(slot, _)| slot).take(SLOTS).collect();
    slots.reverse();
    slots
}

/// The current slot and those before it.
fn newest(job: &KnownJob, now: DateTime<Utc>) -> Vec<Slot> {
    let Some(newest) = job.current(now).into_iter().next() else { return Vec::new() };
    let before = job.timetable.older(&newest, HORIZON, SLOTS - 1);
    std::iter::once(newest).chain(before).collect()
}

fn older(job: &KnownJob, slot: &Slot) -> Vec<Slot> {
    job.timetable.older(slot, HORIZON, SLOTS)
}

/// The next slot, once it has begun.
fn following(job: &KnownJob, slot: &Slot, now: DateTime<Utc>) -> Option<Slot> {
    let tick = job.timetable.schedule().next_after(crate::clock::earlier(slot.end(), Duration::from_nanos(1)))?;
    job.timetable.slot_of(tick).filter(|next| next.start() <= now && next.start() > slot.start())
}

/// The next scheduled times, each with what a change of the clock does there.
fn ahead(job: &KnownJob, now: DateTime<Utc>, note: NoteText) -> Vec<TickView> {
    if job.entry.enabled && !job.orphaned { ticks::soonest_in(&[job], now, TICKS, note) } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::fixture;

    #[test]
    fn a_file_of_output_is_named_by_its_slot_without_what_no_file_can_be_named() {
        let slot = Slot::parse("billing", "2026-11-21T12:30Z", "2026-11-21T12:31Z").unwrap();
        let told = raw(&SlotRecord { slot, ..fixture::failed() }, 3).unwrap();
        let file = told.headers()[CONTENT_DISPOSITION].to_str().unwrap();
        assert_eq!(file, "inline; filename=\"billing-2026-11-21T1230Z-3.txt\"");
    }
}
