//! A command for each message, under the same keeper as a job's: the event in variables, and as JSON on its standard input.

use std::time::Duration;

use tokio::sync::watch;

use crate::exec::Launcher;
use crate::job::{CommandSpec, Program};
use crate::notify::letter::{Letter, shortened};
use crate::notify::sinks::answer::Receipt;
use crate::slot::ExitStatus;
use crate::text;

/// A command that runs for longer is stopped.
const LONGEST_RUN: Duration = Duration::from_secs(30);
/// From TERM to KILL.
const KILL_AFTER: Duration = Duration::from_secs(5);
/// What is kept of its output, for the log.
const OUTPUT: usize = 4 * 1024;
/// Characters of it that are shown.
const SHOWN: usize = 160;
/// A variable of an environment has its bounds.
const LONGEST_TEXT: usize = 16 * 1024;

pub(super) async fn run(program: &Program, sink: &str, letter: &Letter, launcher: &Launcher) -> Receipt {
    let mut command = CommandSpec::new(program.clone());
    command.output_limit = OUTPUT;
    command.env.extend(variables(sink, letter));
    let (_lease, renewals) = watch::channel(None);
    let input = letter.json.to_string().into_bytes();
    let mut running = launcher.launch_fed(&command, format!("notify {sink}"), input, renewals).await;
    if let Ok(exit) = tokio::time::timeout(LONGEST_RUN, running.wait()).await {
        let last = exit.output.text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("").to_owned();
        return judged(&exit.status, &last);
    }
    running.terminate();
    if tokio::time::timeout(KILL_AFTER, running.wait()).await.is_err() {
        running.kill();
    }
    Receipt::again(format!("the command ran for more than {} s and was stopped", LONGEST_RUN.as_secs()))
}

fn variables(sink: &str, letter: &Letter) -> Vec<(String, String)> {
    let pairs = [
        ("CRONWARD_EVENT", letter.kind.to_owned()),
        ("CRONWARD_EVENT_ID", letter.id.clone()),
        ("CRONWARD_EVENT_SINK", sink.to_owned()),
        ("CRONWARD_EVENT_JOB", letter.job.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("CRONWARD_EVENT_SLOT", letter.slot.clone().unwrap_or_default()),
        ("CRONWARD_EVENT_TEXT", shortened(&letter.text().replace('\0', ""), LONGEST_TEXT)),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value)).into()
}

fn judged(status: &ExitStatus, last: &str) -> Receipt {
    let said = text::message(last, SHOWN);
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    match status {
        ExitStatus::Code(0) => Receipt::Taken(format!("exit 0{said}")),
        ExitStatus::Code(code) => Receipt::again(format!("exit {code}{said}")),
        ExitStatus::Signal(signal) => Receipt::again(format!("killed by signal {signal}{said}")),
        ExitStatus::OutputLost => Receipt::again(format!("its output was lost{said}")),
        ExitStatus::NotStarted { message, .. } | ExitStatus::NoResources { message } => {
            Receipt::again(text::message(message, SHOWN))
        }
    }
}
