//! What may be done to a job: pause it, end its pause.

use chrono::{DateTime, Datelike, Utc};

use crate::admin::actions::proposal::StoreStep;
use crate::admin::actions::texts::ActionTexts;
use crate::admin::actions::{Change, Proposal, Undo};
use crate::admin::command_line::{CommandLine, quoted};
use crate::admin::words::{harmless, instant};
use crate::admin::{AdminError, AdminSession, PauseEndError};
use crate::clock::between;
use crate::job::JobName;
use crate::store::{Pause, StoreError};

/// The end of a pause as a person writes it: a duration from now, or a time.
#[cfg(feature = "http")]
pub(crate) fn until(text: &str, now: DateTime<Utc>) -> Result<DateTime<Utc>, PauseEndError> {
    let text = text.trim();
    let span = crate::config::parse_duration(text).ok().filter(|span| !span.is_zero());
    let at = || DateTime::parse_from_rfc3339(text).map(|at| at.to_utc()).ok();
    let slot = || text.parse::<crate::slot::SlotKey>().map(crate::slot::SlotKey::start).ok();
    let end = span.map(|span| crate::clock::later(now, span)).or_else(at).or_else(slot);
    end.ok_or_else(|| PauseEndError::Unreadable(crate::text::message(text, 40)))
}

/// A time that is written as RFC 3339 has four digits for the year.
const LAST_YEAR: i32 = 9_999;

/// None of its slots starts until then, or until it is resumed.
pub(crate) async fn pause(
    session: &AdminSession,
    name: &JobName,
    until: Option<DateTime<Utc>>,
    line: CommandLine,
    t: &ActionTexts,
) -> Result<Proposal, AdminError> {
    let job = &session.catalog.find(name)?.entry.name;
    let now = session.now;
    if let Some(end) = until.filter(|until| *until <= now) {
        return Err(PauseEndError::Passed { end, now }.into());
    }
    if until.is_some_and(|until| until.year() > LAST_YEAR) {
        return Err(PauseEndError::TooLate.into());
    }
    let before = in_force(session, job).await?;
    let written = until.map(|until| (instant(until), between(now, until)));
    let paused = (t.pause.effect)(written.as_ref().map(|(until, left)| (until.as_str(), *left)));
    let replaced = before.as_ref().map(|pause| (t.pause.replaces)(&pause.audit.who, &pause.audit.host));
    let command = line.command(format_args!("pause {job}{}", flag(until)));
    let change = Change {
        verb: "pause",
        target: job.to_string(),
        effect: [paused].into_iter().chain(replaced).collect::<Vec<_>>().join(t.and),
        needless: t.pause.needless.to_owned(),
        undo: Undo::By(line.command(before.map_or_else(|| format!("resume {job}"), |pause| again(job, &pause)))),
        line,
    };
    Ok(Proposal { change, command, step: Some(StoreStep::Pause(job.clone(), until)) })
}

/// Its slots start again.
pub(crate) async fn resume(
    session: &AdminSession,
    name: &JobName,
    line: CommandLine,
    t: &ActionTexts,
) -> Result<Proposal, AdminError> {
    let job = &session.catalog.find(name)?.entry.name;
    let before = in_force(session, job).await?;
    let command = line.command(format_args!("resume {job}"));
    // A pause that is over is none, though the store may still have it.
    let step = before.is_some().then(|| StoreStep::Resume(job.clone()));
    let change = Change {
        verb: "resume",
        target: job.to_string(),
        effect: t.resume.effect.to_owned(),
        needless: t.resume.needless.to_owned(),
        undo: Undo::By(line.command(before.map_or_else(|| format!("pause {job}"), |pause| again(job, &pause)))),
        line,
    };
    Ok(Proposal { change, command, step })
}

/// The pause that is in force. Somebody else's command may still come between this look and the step of the store: whoever is
/// asked agrees to what was seen.
async fn in_force(session: &AdminSession, job: &JobName) -> Result<Option<Pause>, StoreError> {
    let pauses = session.store.pauses().await?;
    let own = pauses.into_iter().find(|(name, _)| name == job).map(|(_, pause)| pause);
    Ok(own.filter(|pause| pause.remaining(session.now).is_some()))
}

/// The words that make such a pause.
fn again(job: &JobName, pause: &Pause) -> String {
    let why = harmless(&pause.audit.why);
    let why = if why.is_empty() { String::new() } else { format!(" --reason {}", quoted(&why)) };
    format!("pause {job}{}{why}", flag(pause.until))
}

fn flag(until: Option<DateTime<Utc>>) -> String {
    until.map(|until| format!(" --until {}", instant(until))).unwrap_or_default()
}
