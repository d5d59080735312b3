//! `locks` and `lock_wait`: what each run of a job holds besides its slot, as people write it.

use std::ops::RangeInclusive;
use std::time::Duration;

use toml::de::DeValue;

use crate::config::reader::{LONGEST, Section, put};
use crate::config::value::{Entry, nearest, nearest_allowed};
use crate::job::{LockName, Policy};
use crate::resource::{Demand, DemandError, Demands, MOST_PERMITS};

const LOCK_WAIT: RangeInclusive<Duration> = Duration::from_secs(1)..=LONGEST;

/// No pool is larger.
const PERMITS: RangeInclusive<i64> = 1..=MOST_PERMITS as i64;

const EXAMPLE: &str = "{ name = \"gpu\", permits = 1, of = 4 }";

/// What a table of a lock may say.
const KNOWN: [&str; 4] = ["name", "mode", "permits", "of"];

/// Whether it is shared.
const MODES: [(&str, bool); 4] = [("exclusive", false), ("shared", true), ("write", false), ("read", true)];

/// Takes over what a section says.
pub(super) fn read(section: &Section<'_>, policy: &mut Policy) {
    put(&mut policy.locks, demands(section));
    put(&mut policy.lock_wait, section.word_or_duration("lock_wait", "slot", LOCK_WAIT));
}

/// An empty list says that nothing is held, whatever `[defaults]` say.
fn demands(section: &Section<'_>) -> Option<Option<Demands>> {
    let entry = section.entry("locks")?;
    let items = entry.items("a list of locks", "[\"db-heavy\"]")?;
    // Every item is read before the first that is wrong decides.
    let demands: Vec<Option<Demand>> = items.iter().map(demand).collect();
    let demands: Vec<Demand> = demands.into_iter().collect::<Option<_>>()?;
    if demands.is_empty() {
        return Some(None);
    }
    match Demands::new(demands) {
        Ok(demands) => Some(Some(demands)),
        Err(error @ DemandError::Twice { .. }) => {
            entry.object("duplicate-lock", error, "name it once");
            None
        }
        Err(error) => {
            entry.object("too-many-locks", error, "take one lock for several of them");
            None
        }
    }
}

fn demand(item: &Entry<'_>) -> Option<Demand> {
    match item.value() {
        DeValue::String(_) => name(item).map(Demand::exclusive),
        DeValue::Table(_) => table(item),
        _ => item.wrong_type("a name or a table", EXAMPLE),
    }
}

fn name(entry: &Entry<'_>) -> Option<LockName> {
    let text = entry.text("\"gpu\"")?;
    match LockName::new(&text) {
        Ok(name) => Some(name),
        Err(error) => {
            let nearest = || LockName::new(&nearest_allowed(&text)).ok().map(|name| format!("for example \"{name}\""));
            let hint = if text.contains(':') { Some(format!("write {EXAMPLE}")) } else { nearest() };
            entry.object("bad-name", error, hint);
            None
        }
    }
}

fn table(item: &Entry<'_>) -> Option<Demand> {
    let fields = item.fields("a name or a table", EXAMPLE)?;
    let field = |key: &str| fields.iter().find(|(name, ..)| *name == key).map(|(.., entry)| entry);
    let is_known = only_known(item, fields.iter().map(|(key, span, _)| (*key, span.clone())));
    let number = |entry: &Entry<'_>| entry.integer(PERMITS, 1).and_then(|number| u32::try_from(number).ok());
    let lock = match field("name") {
        Some(entry) => name(entry),
        None => {
            item.refuse("missing-name", "has no name", "write { name = \"gpu\" }");
            None
        }
    };
    // Each is read before the first that is wrong decides.
    let mode = field("mode").map(|entry| entry.word(&MODES));
    let (permits, of) = (field("permits").map(number), field("of").map(number));
    let lock = lock.filter(|_| is_known)?;
    match (mode, permits, of) {
        (None, None, None) => Some(Demand::exclusive(lock)),
        (Some(shared), None, None) => Some(if shared? { Demand::shared(lock) } else { Demand::exclusive(lock) }),
        (Some(_), ..) => {
            item.refuse("both-modes", "has a mode and permits", "keep mode, or permits and of");
            None
        }
        (None, Some(_), None) => {
            let what = "says how many permits it takes and not of how many";
            item.refuse("missing-of", what, "add of = 4");
            None
        }
        (None, permits, Some(of)) => match Demand::permits(lock, permits.unwrap_or(Some(1))?, of?) {
            Ok(demand) => Some(demand),
            Err(error) => {
                item.object("too-many-permits", error, "make permits at most of");
                None
            }
        },
    }
}

fn only_known<'k>(item: &Entry<'_>, keys: impl Iterator<Item = (&'k str, std::ops::Range<usize>)>) -> bool {
    let unknown: Vec<_> = keys.filter(|(key, _)| !KNOWN.contains(key)).collect();
    for (key, span) in &unknown {
        let hint = match nearest(key, KNOWN) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("known here: {}", KNOWN.join(", ")),
        };
        let shown: String = key.chars().take(60).collect();
        item.ctx.error("unknown-key", span.clone(), format!("{}: unknown key {shown}", item.name), hint);
    }
    unknown.is_empty()
}
