//! What may be done to a job: pause it, end its pause.

use chrono::{DateTime, Utc};

use crate::admin::actions::proposal::StoreStep;
use crate::admin::actions::{Change, Proposal, Undo};
use crate::admin::command_line::{CommandLine, quoted};
use crate::admin::words::{harmless, instant, relative};
use crate::admin::{AdminError, AdminSession};
use crate::job::JobName;
use crate::store::{Pause, StoreError};

/// The end of a pause as a person writes it: a duration from now, or a time.
#[cfg(feature = "http")]
pub(crate) fn until(text: &str, now: DateTime<Utc>) -> Result<DateTime<Utc>, String> {
    let text = text.trim();
    let span = crate::config::parse_duration(text).ok().filter(|span| !span.is_zero());
    let at = || DateTime::parse_from_rfc3339(text).map(|at| at.to_utc()).ok();
    let slot = || text.parse::<crate::slot::SlotKey>().map(crate::slot::SlotKey::start).ok();
    span.map(|span| crate::clock::later(now, span)).or_else(at).or_else(slot).ok_or_else(|| {
        let shown = crate::text::message(text, 40);
        format!("{shown:?} is neither a duration nor a time: write one like 2h, or like 2026-11-21T14:00:00Z")
    })
}

/// None of its slots starts until then, or until it is resumed.
pub(crate) async fn pause(
    session: &AdminSession,
    name: &JobName,
    until: Option<DateTime<Utc>>,
    line: CommandLine,
) -> Result<Proposal, AdminError> {
    let job = &session.catalog.find(name)?.entry.name;
    if let Some(past) = until.filter(|until| *until <= session.now) {
        let (past, now) = (instant(past), instant(session.now));
        return Err(AdminError::Passed(format!(
            "{past} has passed: the store's clock shows {now}; write a later time"
        )));
    }
    let before = in_force(session, job).await?;
    let replaced = before
        .as_ref()
        .map(|pause| format!("; this replaces the pause by {} on {}", pause.audit.who, pause.audit.host));
    let effect = match until {
        Some(until) => format!("no slot of the job starts until {} ({})", instant(until), relative(session.now, until)),
        None => "no slot of the job starts until the job is resumed".to_owned(),
    };
    let command = line.command(format_args!("pause {job}{}", flag(until)));
    let change = Change {
        verb: "pause",
        target: job.to_string(),
        effect: effect + &replaced.unwrap_or_default(),
        needless: "the job is already paused like this".to_owned(),
        undo: Undo::By(line.command(before.map_or_else(|| format!("resume {job}"), |pause| again(job, &pause)))),
        line,
    };
    Ok(Proposal { change, command, step: Some(StoreStep::Pause(job.clone(), until)) })
}

/// Its slots start again.
pub(crate) async fn resume(session: &AdminSession, name: &JobName, line: CommandLine) -> Result<Proposal, AdminError> {
    let job = &session.catalog.find(name)?.entry.name;
    let before = in_force(session, job).await?;
    let command = line.command(format_args!("resume {job}"));
    let change = Change {
        verb: "resume",
        target: job.to_string(),
        effect: "the slots of the job start again".to_owned(),
        needless: "the job is not paused".to_owned(),
        undo: Undo::By(line.command(before.map_or_else(|| format!("pause {job}"), |pause| again(job, &pause)))),
        line,
    };
    Ok(Proposal { change, command, step: Some(StoreStep::Resume(job.clone())) })
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
