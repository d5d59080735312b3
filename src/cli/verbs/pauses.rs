//! `cronward pause` and `resume`: whether slots of a job are started.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::pasted::quoted;
use crate::cli::session::Session;
use crate::cli::store_args::StoreArgs;
use crate::cli::text::{harmless, instant, relative};
use crate::cli::values;
use crate::cli::verbs::deed::{Deed, OperatorArgs};
use crate::clock::later;
use crate::job::JobName;
use crate::store::Pause;

/// Start no slot of a job, until an instant or until it is resumed
///
/// A run that is in progress goes on. Slots that end meanwhile without an attempt are skipped, not missed. Another pause
/// replaces this one.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward pause billing --until 2h --reason 'database upgrade' --yes")]
pub(crate) struct PauseArgs {
    /// The job
    #[arg(value_name = "JOB")]
    pub(crate) job: JobName,
    /// When it ends by itself: a span from now like 2h, or an instant like 2026-11-21T14:00:00Z [default: when resumed]
    #[arg(long, value_name = "WHEN", value_parser = until)]
    pub(crate) until: Option<Until>,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// An end, as it was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// So long from now.
    After(Duration),
    /// At this instant.
    At(DateTime<Utc>),
}

fn until(text: &str) -> Result<Until, String> {
    values::span(text).map(Until::After).or_else(|_| {
        values::instant(text).map(Until::At).map_err(|_| {
            format!("{text:?} is neither a span nor an instant: write one like 2h, or like 2026-11-21T14:00:00Z")
        })
    })
}

/// Pauses the job.
pub(crate) async fn pause(args: &PauseArgs, console: &mut Console) -> Result<(), Failure> {
    let session = Session::open(&args.store, console).await?;
    pause_in(&session, args, console).await
}

pub(super) async fn pause_in(session: &Session, args: &PauseArgs, console: &mut Console) -> Result<(), Failure> {
    let job = &session.catalog.find(&args.job)?.entry.name;
    let until = args.until.map(|until| match until {
        Until::After(span) => later(session.now, span),
        Until::At(instant) => instant,
    });
    if let Some(past) = until.filter(|until| *until <= session.now) {
        let (past, now) = (instant(past), instant(session.now));
        return Err(Failure::Usage(format!(
            "--until {past} is over: by the store's clock it is {now}; write a later one"
        )));
    }
    let before = in_force(session, job).await?;
    let replaced =
        before.as_ref().map(|pause| format!(", in place of the pause by {} on {}", pause.audit.who, pause.audit.host));
    let deed = Deed {
        verb: "pause",
        target: job.to_string(),
        effect: match until {
            Some(until) => {
                format!("none of its slots is started until {} ({})", instant(until), relative(session.now, until))
            }
            None => "none of its slots is started until it is resumed".to_owned(),
        } + &replaced.unwrap_or_default(),
        needless: "it is paused like this already".to_owned(),
        undo: args.store.command(before.map_or_else(|| format!("resume {job}"), |pause| again(job, &pause))),
        store: args.store.clone(),
    };
    if !deed.confirm(&args.operator, console)? {
        return Ok(());
    }
    let answer = session.store.pause(job, until, &args.operator.audit("pause")).await?;
    deed.tell(answer, args.output, console)
}

/// The pause that is in force. Somebody else's verb may still come between this look and the step of the store: whoever is
/// asked agrees to what was seen.
async fn in_force(session: &Session, job: &JobName) -> Result<Option<Pause>, Failure> {
    let pauses = session.store.pauses().await?;
    let own = pauses.into_iter().find(|(name, _)| name == job).map(|(_, pause)| pause);
    Ok(own.filter(|pause| pause.remaining(session.now).is_some()))
}

/// The words that make such a pause.
fn again(job: &JobName, pause: &Pause) -> String {
    let until = pause.until.map(|until| format!(" --until {}", instant(until))).unwrap_or_default();
    let why = harmless(&pause.audit.why);
    let why = if why.is_empty() { String::new() } else { format!(" --reason {}", quoted(&why)) };
    format!("pause {job}{until}{why}")
}

/// End the pause of a job: its current slot is started at once if it is due and not done
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward resume billing --reason 'upgrade is over' --yes")]
pub(crate) struct ResumeArgs {
    /// The job
    #[arg(value_name = "JOB")]
    pub(crate) job: JobName,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Resumes the job.
pub(crate) async fn resume(args: &ResumeArgs, console: &mut Console) -> Result<(), Failure> {
    let session = Session::open(&args.store, console).await?;
    resume_in(&session, args, console).await
}

pub(super) async fn resume_in(session: &Session, args: &ResumeArgs, console: &mut Console) -> Result<(), Failure> {
    let job = &session.catalog.find(&args.job)?.entry.name;
    let before = in_force(session, job).await?;
    let deed = Deed {
        verb: "resume",
        target: job.to_string(),
        effect: "its slots are started again".to_owned(),
        needless: "it is not paused".to_owned(),
        undo: args.store.command(before.map_or_else(|| format!("pause {job}"), |pause| again(job, &pause))),
        store: args.store.clone(),
    };
    if !deed.confirm(&args.operator, console)? {
        return Ok(());
    }
    let answer = session.store.resume(job, &args.operator.audit("resume")).await?;
    deed.tell(answer, args.output, console)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_a_span_or_an_instant() {
        assert_eq!(until("2h"), Ok(Until::After(Duration::from_secs(7_200))));
        assert_eq!(until("2026-11-21T14Z"), Ok(Until::At("2026-11-21T14:00:00Z".parse().unwrap())));
        for text in ["", "soon", "0s", "-2h"] {
            assert!(until(text).unwrap_err().contains("2h"), "{text}");
        }
    }
}
