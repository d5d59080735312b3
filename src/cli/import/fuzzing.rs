//! A door for the fuzz target: any bytes as a crontab. Only behind its feature.

use chrono::DateTime;

use super::document;
use super::line::Names;
use super::table::{self, Source};
use crate::cli::import::document::{Item, ZoneSource, comment};
use crate::cli::import::entry::Accounts;
use crate::config::{Environment, parse};
use crate::text::is_harmful;
use crate::zone::Zone;

/// Bytes of a document that is read again, besides those of its crontab.
const LONGEST: usize = 16 << 10;

/// Characters of what is told of a line.
const READABLE: usize = 2_000;

/// A user's own crontab and a system's one. What is made of each can be read again, with as many jobs. True when every line
/// of the user's own can be imported.
pub fn crontab(bytes: &[u8]) -> bool {
    let leads = table::leads(bytes);
    let _ = Accounts::of("").judge(&leads, |_| false);
    imported(bytes, true);
    imported(bytes, false)
}

fn imported(text: &[u8], system: bool) -> bool {
    let zone = (Zone::UTC, ZoneSource::Machine);
    let items = table::read(&Source { file: "c", text, system, zone: zone.clone() }, &mut Names::default());
    let lines = text.split(|byte| *byte == b'\n').count();
    assert!(items.len() <= lines + 2, "{} items of {lines} lines", items.len());
    items.iter().for_each(is_told);
    let document = document::write(&items, zone, None);
    assert!(!document.contains(|c| is_harmful(c) && c != '\n'), "what is written moves a cursor: {document:?}");
    let jobs = items.iter().filter(|item| matches!(item, Item::Job(_))).count();
    // Settings that are repeated for many jobs make it longer than a file is; how such a one is read, `config` says.
    if document.len() <= LONGEST + 2 * text.len() {
        let read = parse("jobs.toml", document, &Environment::new(DateTime::UNIX_EPOCH));
        assert_eq!(read.map(|(config, _)| config.jobs.len()).map_err(|report| report.to_string()), Ok(jobs));
    }
    !items.iter().any(|item| matches!(item, Item::Refused(_)))
}

/// What is told on a terminal is one line that can be read.
fn is_told(item: &Item) {
    let Item::Refused(refused) = item else { return };
    let told = comment(&format!("{}: not imported: {}", refused.place, refused.why));
    assert!(!told.chars().any(is_harmful), "not one harmless line: {told:?}");
    assert!(told.chars().count() <= READABLE, "too long to be read: {} bytes", told.len());
}
