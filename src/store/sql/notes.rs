//! Notes on slots in their table. No rule reads it, and no row of it belongs to a row of the slots: a slot that nobody claimed
//! is noted on too.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::fault::Fault;
use super::row;
use super::session::{Columns, Session, values};
use super::slots::{Scope, asked};
use crate::slot::{NotePage, Slot};

/// Pages of one statement.
const AT_ONCE: usize = 200;

/// Pages that one purge removes at the most.
const PURGE_AT_ONCE: i64 = 5_000;

/// A slot's identity in the tables.
type Id = (String, i64);

fn odd(why: row::Why) -> Fault {
    Fault::Row(format!("table notes: {why}"))
}

/// Keeps pages.
pub(super) async fn note<S: Session>(tx: &mut S, scope: &Scope, pages: &[(Slot, NotePage)]) -> Result<(), Fault> {
    for part in pages.chunks(AT_ONCE) {
        // By name: nodes that note on the same slots at the same time never wait for each other in a circle.
        let mut by_name = BTreeMap::new();
        for (slot, page) in part {
            let (start, kept) = (slot.start().timestamp_millis(), tx.now().max(slot.end()).timestamp_millis());
            let named = (slot.job().as_str(), start, page.id.as_str());
            let record = row::json(page).map_err(odd)?;
            by_name.insert(named, (page.last.timestamp_millis(), kept, record));
        }
        let rows: Vec<_> = by_name
            .iter()
            .map(|((job, start, id), (last, kept, record))| (job, start, id, last, kept, record))
            .collect();
        let rows = row::json(&rows).map_err(odd)?;
        tx.execute(tx.texts().notes_save, values![scope.namespace.as_str(), rows]).await?;
        trim(tx, scope, part).await?;
    }
    Ok(())
}

/// Removes the pages that are too many.
async fn trim<S: Session>(tx: &mut S, scope: &Scope, part: &[(Slot, NotePage)]) -> Result<(), Fault> {
    let mut slots: Vec<Slot> = part.iter().map(|(slot, _)| slot.clone()).collect();
    slots.sort();
    slots.dedup();
    let rows = tx.fetch(tx.texts().notes_there, values![scope.namespace.as_str(), asked(&slots)]).await?;
    let mut kept: BTreeMap<Id, Vec<(DateTime<Utc>, String, ())>> = BTreeMap::new();
    for found in &rows {
        let Some((id, last, page)) = place(found).map_err(odd)? else { continue };
        kept.entry(id).or_default().push((last, page, ()));
    }
    for ((job, start), pages) in kept {
        for (page, ()) in NotePage::surplus(pages) {
            let named = values![scope.namespace.as_str(), job.as_str(), start, page];
            tx.execute(tx.texts().notes_forget, named).await?;
        }
    }
    Ok(())
}

/// The slot that a row's page is of, when its last note was made, and its name; none where one of them is NULL.
pub(super) fn place(found: &impl Columns) -> Result<Option<(Id, DateTime<Utc>, String)>, row::Why> {
    let id = row::text(found, "job")?.zip(row::number(found, "start_ms")?);
    let named = row::instant(found, "last_ms")?.zip(row::text(found, "page")?);
    Ok(id.zip(named).map(|(id, (last, page))| (id, last, page)))
}

/// The page of a row.
pub(super) fn page(found: &impl Columns) -> Result<NotePage, row::Why> {
    row::there(row::record(found, "record")?, "record")
}

/// A slot's pages.
pub(super) async fn notes<S: Session>(tx: &mut S, scope: &Scope, slot: &Slot) -> Result<Vec<NotePage>, Fault> {
    let oldest = scope.oldest(tx.now());
    let named = values![scope.namespace.as_str(), slot.job().as_str(), slot.start(), oldest];
    let rows = tx.fetch(tx.texts().notes_read, named).await?;
    let mut pages: Vec<NotePage> = rows.iter().map(page).collect::<Result<_, _>>().map_err(odd)?;
    NotePage::sort(&mut pages);
    Ok(pages)
}

/// Removes a batch of what is older than the retention.
pub(super) async fn purge<S: Session>(tx: &mut S, scope: &Scope) -> Result<(), Fault> {
    let values = values![scope.namespace.as_str(), scope.oldest(tx.now()), PURGE_AT_ONCE];
    tx.execute(tx.texts().notes_purge, values).await.map(drop)?;
    Ok(())
}
