//! `--report FILE`: what happened, as JSON. The file is made before the command is started, so that a path that cannot be
//! written is known in time, and filled in one step: a reader sees all of it or nothing. What is no regular file (a pipe, a
//! terminal) is written to as it is.

use std::io::Write;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::cli::ExitCode;
use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::guarded::verdict::Verdict;
use crate::drive::{Account, RunAccount};
use crate::job::{JobName, NodeName};
use crate::slot::{Attempt, Fence, Outcome, Slot};

/// What happened. These fields are a promise, as those of [`crate::observe::view`] are.
#[derive(Debug, Serialize)]
pub(super) struct ReportView<'a> {
    /// The job's name.
    job: &'a JobName,
    /// The slot's key.
    slot: String,
    /// Its start, inclusive.
    start: DateTime<Utc>,
    /// Its end, exclusive.
    end: DateTime<Utc>,
    /// How the last attempt ended (`success`, `failure`, …); where none was begun, the store's answer (`held`, `done`, …),
    /// `store_unavailable`, `store_refuses` or `interrupted`; `nested` for a command within a run of the same slot.
    result: &'a str,
    /// This process's exit code.
    exit_code: u8,
    /// Who holds the slot or did it, where that was the answer.
    by: Option<&'a NodeName>,
    /// The attempts that were begun here.
    runs: Vec<RunView<'a>>,
    /// What was said on stderr.
    messages: &'a [String],
    /// How far it can be taken back, where a person asked for it and something was run.
    undo: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct RunView<'a> {
    attempt: Attempt,
    fence: Fence,
    /// False: the store was away, and the policy says to run all the same.
    guarded: bool,
    outcome: Option<Outcome>,
    exit_code: Option<i32>,
    signal: Option<i32>,
    duration_s: Option<f64>,
    message: Option<&'a str>,
    /// Another run may have overlapped.
    lease_lost: bool,
    /// The store knows how it ended.
    recorded: bool,
}

/// A report to be written.
#[derive(Debug)]
pub(super) struct Report {
    path: PathBuf,
    /// Where it is written first; none for what is no regular file.
    draft: Option<PathBuf>,
    file: std::fs::File,
}

impl Report {
    /// Makes the file's draft beside it.
    pub(super) fn begin(path: &Path) -> Result<Self, Failure> {
        let refused = |error| {
            Failure::Usage(format!("--report {}: {error}; name another file; nothing was started", path.display()))
        };
        let special = std::fs::metadata(path).is_ok_and(|found| !found.is_file());
        let draft = (!special).then(|| draft_of(path));
        let file = match &draft {
            Some(draft) => std::fs::File::create(draft),
            None => std::fs::OpenOptions::new().write(true).open(path),
        };
        Ok(Self { path: path.to_owned(), draft, file: file.map_err(refused)? })
    }

    /// Fills it in and gives it its name. That this failed is told in words: the command's exit code matters more.
    pub(super) fn finish(mut self, view: &ReportView<'_>) -> Result<(), String> {
        self.write(view).map_err(|error| {
            format!("--report {}: {error}; the command's exit code is passed on all the same", self.path.display())
        })
    }

    fn write(&mut self, view: &ReportView<'_>) -> std::io::Result<()> {
        let mut bytes = serde_json::to_vec_pretty(view)?;
        bytes.push(b'\n');
        self.file.write_all(&bytes)?;
        let Some(draft) = &self.draft else { return Ok(()) };
        self.file.sync_data()?;
        std::fs::rename(draft, &self.path)?;
        self.draft = None;
        Ok(())
    }
}

impl Drop for Report {
    /// What did not become a report is not left lying about.
    fn drop(&mut self) {
        self.draft.iter().for_each(|draft| drop(std::fs::remove_file(draft)));
    }
}

fn draft_of(path: &Path) -> PathBuf {
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}.new", std::process::id()));
    PathBuf::from(draft)
}

/// What is told of an account.
pub(super) fn view<'a>(account: &'a Account, verdict: &'a Verdict, undo: Option<&'a str>) -> ReportView<'a> {
    ReportView {
        job: account.slot.job(),
        slot: account.slot.key().to_string(),
        start: account.slot.start(),
        end: account.slot.end(),
        result: verdict.result,
        exit_code: verdict.code,
        by: account.by.as_ref(),
        runs: account.runs.iter().map(run_view).collect(),
        messages: &verdict.told,
        undo,
    }
}

fn run_view(run: &RunAccount) -> RunView<'_> {
    RunView {
        attempt: run.attempt,
        fence: run.fence,
        guarded: run.guarded,
        outcome: run.outcome,
        exit_code: run.exit_code,
        signal: run.signal,
        duration_s: run.duration.map(|duration| duration.as_secs_f64()),
        message: run.message.as_deref(),
        lease_lost: run.lost,
        recorded: run.settled,
    }
}

/// Where it is told what happened, besides stderr.
#[derive(Debug, Default)]
pub(super) struct Telling {
    pub(super) report: Option<Report>,
    /// On stdout, too.
    pub(super) json: bool,
    /// How far it can be taken back.
    pub(super) undo: Option<String>,
}

/// Says what there is to say, and ends with the verdict's code.
pub(super) fn finish(
    account: &Account,
    verdict: &Verdict,
    telling: Telling,
    console: &mut Console,
) -> Result<(), Failure> {
    verdict.told.iter().for_each(|line| console.note(format_args!("cronward: {line}")));
    if let Some(undo) = &telling.undo {
        console.note(format_args!("cronward: to undo: {undo}"));
    }
    let view = view(account, verdict, telling.undo.as_deref());
    if let Some(Err(error)) = telling.report.map(|report| report.finish(&view)) {
        console.note(format_args!("cronward: {error}"));
    }
    if telling.json {
        console.json(&view)?;
    }
    if verdict.code == 0 { Ok(()) } else { Err(Failure::Child(verdict.code)) }
}

/// A store that cannot even be opened is reported like one that refuses; whoever called is told by the failure itself.
pub(super) fn not_opened(slot: Slot, failure: Failure, telling: Telling, console: &mut Console) -> Failure {
    let code = failure.exit_code();
    let result = if code == ExitCode::TryAgain { "store_unavailable" } else { "store_refuses" };
    let verdict = Verdict { code: code as u8, result, told: vec![failure.to_string()] };
    let account = Account::new(slot);
    let view = view(&account, &verdict, None);
    if let Some(Err(error)) = telling.report.map(|report| report.finish(&view)) {
        console.note(format_args!("cronward: {error}"));
    }
    failure
}
