//! What an account means for the caller: an exit code, the words where there is something to say, and `--report FILE`, what happened
//! as JSON.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::admin::actions::{self, Undo};
use crate::cli::ExitCode;
use crate::cli::console::Console;
use crate::cli::failure::{Failure, way_out};
use crate::cli::guarded::report_file::ReportFile;
use crate::cli::guarded::waiting::lost_words;
use crate::config::format_duration;
use crate::drive::{Account, RunAccount};
use crate::error::ErrorKind;
use crate::job::{JobName, NodeName};
use crate::reply::ClaimAnswer;
use crate::slot::{Exit, ExitStatus, NOT_STARTED, OUTPUT_LOST, Outcome, Slot};

/// For the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// This process's exit code.
    pub(super) code: u8,
    /// One word: an outcome, an answer of the store, or why there was none.
    pub(super) result: &'static str,
    /// Lines for stderr; none where all is as it should be.
    pub(super) told: Vec<String>,
}

impl Verdict {
    /// The same where output of a command that had ended could not be written, a line for each stream: its caller has no success.
    pub(super) fn with_unwritten(mut self, unwritten: Vec<String>) -> Self {
        if self.code == ExitCode::Success as u8 && !unwritten.is_empty() {
            self.code = ExitCode::OutputLost as u8;
        }
        self.told.extend(unwritten);
        self
    }

    /// Says what there is to say.
    pub(super) fn tell(&self, console: &mut Console) {
        self.told.iter().for_each(|line| console.note(format_args!("cronward: {line}")));
    }

    /// What the process ends with.
    pub(super) const fn ending(&self) -> Result<(), Failure> {
        if self.code == 0 { Ok(()) } else { Err(Failure::Child(self.code)) }
    }

    /// The same of a slot that is current by this machine's clock alone, which is `ahead_ms` ahead of the store's, where that
    /// is known.
    pub(super) fn with_clock(mut self, ahead_ms: Option<i64>) -> Self {
        let off = ahead_ms.map_or_else(String::new, |off| format_duration(rounded(off)) + " ");
        let side = if self.result == ClaimAnswer::Early.as_str() { "ahead of" } else { "behind" };
        if let Some(line) = self.told.last_mut() {
            *line = format!("{line}; this machine's clock is {off}{side} the store's clock: synchronize it (NTP)");
        }
        self
    }
}

/// In seconds, where it is as much.
fn rounded(milliseconds: i64) -> Duration {
    let span = Duration::from_millis(milliseconds.unsigned_abs());
    if span.as_secs() > 0 { Duration::from_secs(span.as_secs()) } else { span }
}

/// Whether the slot that was asked for is not current by the store's clock. The end of a slot that was waited for says nothing of the
/// clocks.
pub(super) fn is_outside(account: &Account) -> bool {
    let outside = match account.answer {
        Some(ClaimAnswer::Early) => true,
        Some(ClaimAnswer::Closed) => !account.waited,
        _ => false,
    };
    outside && account.runs.is_empty() && account.store_error.is_none()
}

/// Judges an account; `skipped` is the code for a command that was not started.
pub(super) fn judge(account: &Account, skipped: u8, ended_by: Option<i32>) -> Verdict {
    match (account.last_run(), &account.store_error, ended_by) {
        (Some(run), ..) => of_run(account, run),
        (None, _, Some(signal)) => of_signal(signal),
        (None, Some((kind, message)), None) => of_silence(*kind, message),
        (None, None, None) => of_answer(account, skipped),
    }
}

/// A slot of the future is refused: whoever named it meant another, or has to come again. None for a slot that has begun.
pub(super) fn not_begun(slot: &Slot, now: DateTime<Utc>) -> Option<Verdict> {
    let why = actions::not_begun(slot, now)?;
    Some(Verdict { code: ExitCode::StoreRefuses as u8, result: "early", told: vec![why.to_string()] })
}

pub(super) fn to_the_second(instant: DateTime<Utc>) -> impl std::fmt::Display {
    instant.format("%Y-%m-%d %H:%M:%S UTC")
}

/// Nothing was started, for what the store has answered. Where another node runs the slot, has done it or exhausted its
/// attempts, all is as it should be.
fn of_answer(account: &Account, skipped: u8) -> Verdict {
    let slot = &account.slot;
    if let Some(held) = &account.queued {
        return Verdict { code: skipped, result: "locked", told: vec![format!("{slot} was skipped: {held}")] };
    }
    let result = account.answer.map_or("unknown", ClaimAnswer::as_str);
    let outside = ExitCode::StoreRefuses as u8;
    let (code, told) = match account.answer {
        Some(ClaimAnswer::Early) => {
            let start = to_the_second(slot.start());
            (outside, format!("{slot} was not run: the slot starts at {start} by the store's clock"))
        }
        Some(ClaimAnswer::Closed) if !account.waited => {
            let end = to_the_second(slot.end());
            (outside, format!("{slot} was not run: the slot ended at {end} by the store's clock"))
        }
        Some(ClaimAnswer::Blocked) => {
            let by = account.by.as_ref().map_or_else(String::new, |node| format!(" on node {node}"));
            (skipped, format!("{slot} was skipped: another slot of the job still runs{by} (concurrency = \"forbid\")"))
        }
        Some(ClaimAnswer::Paused) => {
            (skipped, format!("{slot} was skipped: the job is paused (to resume it: `cronward resume {}`)", slot.job()))
        }
        // The store granted it when there was no time left to start anything.
        Some(ClaimAnswer::Claimed) => (
            ExitCode::TryAgain as u8,
            format!("the lease of {slot} was granted too late and released; the command was not started"),
        ),
        Some(
            ClaimAnswer::Held
            | ClaimAnswer::Done
            | ClaimAnswer::Exhausted
            | ClaimAnswer::Backoff
            | ClaimAnswer::Closed
            | ClaimAnswer::Unknown,
        )
        | None => return Verdict { code: skipped, result, told: Vec::new() },
    };
    Verdict { code, result, told: vec![told] }
}

fn of_run(account: &Account, run: &RunAccount) -> Verdict {
    let outcome = run.outcome.unwrap_or(Outcome::Crashed);
    let code = match outcome {
        Outcome::Timeout => ExitCode::Timeout as u8,
        Outcome::LostLease => ExitCode::LeaseLost as u8,
        Outcome::Success | Outcome::Failure | Outcome::Killed | Outcome::GivenBack | Outcome::Crashed => own_code(run),
    };
    let slot = &account.slot;
    let mut told = Vec::new();
    if outcome == Outcome::Timeout {
        told.push(format!("{slot}: attempt {} was stopped after its timeout", run.attempt));
    }
    if let Some(message) = &run.message {
        told.push(message.clone());
    }
    if !run.guarded {
        told.push(format!("{slot} ran without a guard: the store was unreachable, and on_store_error = \"run\""));
    }
    told.extend(run.lost.iter().map(|lost| lost_words(slot, run.attempt, lost)));
    told.extend((!run.settled).then(|| not_recorded(account, run)));
    Verdict { code, result: outcome.as_str(), told }
}

/// Nobody else knows how the run ended, nor that it did.
fn not_recorded(account: &Account, run: &RunAccount) -> String {
    let how = match (run.exit_code, run.signal) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    };
    let error = account.store_error.as_ref().map_or("the store has not confirmed it", |(_, error)| error);
    let slot = &account.slot;
    let then = if account.past {
        format!("no node starts a slot that is over: if the work is done, `cronward mark-done {slot}`")
    } else {
        "once the lease expires, another node may run the slot again".to_owned()
    };
    format!("{slot}: attempt {} {how}, but the outcome was not recorded: {error}; {then}", run.attempt)
}

/// The command's own code, as a shell would have it.
fn own_code(run: &RunAccount) -> u8 {
    code_of(run.exit_code, run.signal)
}

/// The code of a command that exited with this code or was ended by this signal.
fn code_of(exit_code: Option<i32>, signal: Option<i32>) -> u8 {
    match (exit_code, signal) {
        (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
        (None, Some(signal)) => by_signal(signal),
        (None, None) => ExitCode::Internal as u8,
    }
}

/// Of a command that was no attempt at a slot: its code, and what there is to tell of its end.
pub(super) fn of_exit(exit: Exit) -> Verdict {
    let (exit_code, signal, told) = match exit.status {
        ExitStatus::Code(code) => (Some(code), None, exit.note),
        ExitStatus::Signal(signal) => (None, Some(signal), exit.note),
        ExitStatus::OutputLost => (Some(OUTPUT_LOST.into()), None, exit.note),
        ExitStatus::NotStarted { code, message } => (Some(code), None, Some(message)),
        ExitStatus::NoResources { message } => (Some(NOT_STARTED), None, Some(message)),
    };
    Verdict { code: code_of(exit_code, signal), result: "ended", told: told.into_iter().collect() }
}

/// Nothing was begun: a signal came before.
pub(super) fn of_signal(number: i32) -> Verdict {
    Verdict { code: by_signal(number), result: "interrupted", told: Vec::new() }
}

fn by_signal(number: i32) -> u8 {
    u8::try_from(number.saturating_add(128)).unwrap_or(u8::MAX)
}

/// The store was asked, and nothing is known.
pub(super) fn of_silence(kind: ErrorKind, message: &str) -> Verdict {
    let (code, result) = if kind.is_transient() {
        (ExitCode::TryAgain, "store_unavailable")
    } else {
        (ExitCode::StoreRefuses, "store_refuses")
    };
    // Behind the store and the operation.
    let own = message.splitn(3, ": ").nth(2).unwrap_or(message);
    Verdict {
        code: code as u8,
        result,
        told: vec![format!("{message}{}; the command was not started", way_out(kind, own))],
    }
}

/// What happened. These fields are a promise, as those of [`crate::observe::view`] are.
#[derive(Debug, Serialize)]
struct ReportView<'a> {
    /// The job's name.
    job: &'a JobName,
    /// The slot's key.
    slot: String,
    /// Its start, inclusive.
    start: DateTime<Utc>,
    /// Its end, exclusive.
    end: DateTime<Utc>,
    /// How the last attempt ended (`success`, `failure`, …); where none was begun, the store's answer (`held`, `done`, …), the state of
    /// a slot that was waited for and not done (`failed`, `missed`, `skipped`),
    /// `store_unavailable`, `store_refuses` or `interrupted`; `nested` for a command within a run of the same slot.
    result: &'a str,
    /// This process's exit code.
    exit_code: u8,
    /// Who holds the slot or did it, where that was the answer.
    by: Option<&'a NodeName>,
    /// The attempts that were begun here.
    runs: &'a [RunAccount],
    /// What was said on stderr.
    messages: &'a [String],
    /// How far it can be taken back, where a person asked for it and something was run.
    undo: Option<&'a str>,
}

/// What is told of an account.
fn view<'a>(account: &'a Account, verdict: &'a Verdict, undo: Option<&'a str>) -> ReportView<'a> {
    ReportView {
        job: account.slot.job(),
        slot: account.slot.key().to_string(),
        start: account.slot.start(),
        end: account.slot.end(),
        result: verdict.result,
        exit_code: verdict.code,
        by: account.by.as_ref(),
        runs: &account.runs,
        messages: &verdict.told,
        undo,
    }
}

/// Where it is told what happened, besides stderr.
#[derive(Debug, Default)]
pub(super) struct Telling {
    pub(super) report: Option<ReportFile>,
    /// On stdout, too.
    pub(super) json: bool,
    /// How far it can be taken back.
    pub(super) undo: Option<Undo>,
}

/// Says what there is to say, and ends with the verdict's code.
pub(super) fn finish(
    account: &Account,
    verdict: &Verdict,
    telling: Telling,
    console: &mut Console,
) -> Result<(), Failure> {
    verdict.tell(console);
    if let Some(undo) = &telling.undo {
        console.note(format_args!("cronward: {undo}"));
    }
    let view = view(account, verdict, telling.undo.as_ref().map(Undo::as_str));
    if let Some(Err(error)) = telling.report.map(|report| report.finish(&view)) {
        console.note(format_args!("cronward: {error}"));
    }
    if telling.json {
        console.json(&view)?;
    }
    verdict.ending()
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

#[cfg(test)]
mod tests {
    use super::*;

    use crate::machine::End;
    use crate::slot::Fence;

    fn account() -> Account {
        Account {
            slot: Slot::parse("billing", "2026-11-21T14Z", "2026-11-21T15Z").unwrap(),
            end: Some(End::Left),
            answer: None,
            waited: false,
            by: None,
            store_error: None,
            queued: None,
            runs: Vec::new(),
            past: false,
        }
    }

    fn ran(outcome: Outcome, exit_code: Option<i32>, signal: Option<i32>) -> Account {
        let run = RunAccount {
            attempt: 1,
            fence: Fence(1),
            guarded: true,
            outcome: Some(outcome),
            exit_code,
            signal,
            duration: None,
            message: None,
            lost: Vec::new(),
            settled: true,
        };
        Account { answer: Some(ClaimAnswer::Claimed), runs: vec![run], ..account() }
    }

    fn code(account: &Account) -> u8 {
        judge(account, 7, None).code
    }

    #[test]
    fn the_commands_own_code_is_passed_on() {
        assert_eq!(code(&ran(Outcome::Success, Some(0), None)), 0);
        assert_eq!(code(&ran(Outcome::Success, Some(3), None)), 3);
        assert_eq!(code(&ran(Outcome::Failure, Some(75), None)), 75);
        assert_eq!(code(&ran(Outcome::Failure, Some(127), None)), 127);
        assert_eq!(code(&ran(Outcome::Killed, None, Some(15))), 143);
    }

    #[test]
    fn whoever_waited_for_locks_in_vain_is_told_who_holds_them() {
        let queued = Some("db is held by export@2026-11-21T13Z#1 on node c".to_owned());
        let verdict = judge(&Account { answer: Some(ClaimAnswer::Claimed), queued, ..account() }, 7, None);
        assert_eq!((verdict.code, verdict.result), (7, "locked"));
        let told = "billing@2026-11-21T14Z was skipped: db is held by export@2026-11-21T13Z#1 on node c";
        assert_eq!(verdict.told, [told]);
    }

    #[test]
    fn what_the_guard_did_to_the_command_has_codes_of_its_own() {
        assert_eq!(code(&ran(Outcome::Timeout, Some(0), None)), 124);
        assert_eq!(code(&ran(Outcome::LostLease, None, Some(9))), 76);
    }

    #[test]
    fn output_that_is_lost_after_the_end_is_told_and_no_success() {
        let verdict = |exit_code| judge(&ran(Outcome::Success, Some(exit_code), None), 7, None);
        assert_eq!(verdict(0).with_unwritten(Vec::new()), verdict(0));
        for (exit_code, code) in [(0, 74), (3, 3)] {
            let told = vec!["full".to_owned()];
            assert_eq!(verdict(exit_code).with_unwritten(told.clone()), Verdict { code, told, ..verdict(exit_code) });
        }
    }

    #[test]
    fn a_slot_that_is_held_done_or_exhausted_is_silent() {
        use ClaimAnswer::{Backoff, Closed, Done, Exhausted, Held};
        for answer in [Held, Done, Exhausted, Backoff, Closed] {
            let account = Account { answer: Some(answer), waited: true, ..account() };
            assert_eq!(judge(&account, 7, None), Verdict { code: 7, result: answer.as_str(), told: Vec::new() });
            assert!(!is_outside(&account));
        }
    }

    #[test]
    fn a_slot_that_is_not_current_by_the_stores_clock_is_refused_with_what_is_wrong_with_this_one() {
        for (answer, ahead_ms, line) in [
            (
                ClaimAnswer::Closed,
                Some(-3_599_870),
                "the slot ended at 2026-11-21 15:00:00 UTC by the store's clock; this machine's clock is 59m 59s behind the store's clock: synchronize it (NTP)",
            ),
            (
                ClaimAnswer::Early,
                Some(400),
                "the slot starts at 2026-11-21 14:00:00 UTC by the store's clock; this machine's clock is 400ms ahead of the store's clock: synchronize it (NTP)",
            ),
            (
                ClaimAnswer::Early,
                None,
                "the slot starts at 2026-11-21 14:00:00 UTC by the store's clock; this machine's clock is ahead of the store's clock: synchronize it (NTP)",
            ),
        ] {
            let account = Account { answer: Some(answer), ..account() };
            assert!(is_outside(&account));
            let verdict = judge(&account, 7, None).with_clock(ahead_ms);
            assert_eq!((verdict.code, verdict.result), (69, answer.as_str()));
            assert_eq!(verdict.told, [format!("billing@2026-11-21T14Z was not run: {line}")]);
        }
    }

    #[test]
    fn a_slot_that_is_skipped_is_told() {
        for (answer, words) in [
            (ClaimAnswer::Blocked, "still runs on node b (concurrency"),
            (ClaimAnswer::Paused, "cronward resume billing"),
        ] {
            let by = Some("b".parse().unwrap());
            let verdict = judge(&Account { answer: Some(answer), by, ..account() }, 7, None);
            assert_eq!((verdict.code, verdict.result, verdict.told.len()), (7, answer.as_str(), 1));
            assert!(verdict.told[0].contains(words), "{:?}", verdict.told);
        }
    }

    #[test]
    fn a_slot_of_the_future_is_refused_with_its_start() {
        let slot = account().slot;
        assert_eq!(not_begun(&slot, slot.start()), None);
        let verdict = not_begun(&slot, "2026-11-21T13:59:59Z".parse().unwrap()).unwrap();
        assert_eq!((verdict.code, verdict.result), (69, "early"));
        let told =
            "slot 2026-11-21T14Z of billing starts at 2026-11-21 14:00:00 UTC; only current and past slots can be run";
        assert_eq!(verdict.told, [told]);
    }

    #[test]
    fn what_is_not_recorded_is_told_with_what_comes_of_it() {
        let mut account = ran(Outcome::Failure, Some(3), None);
        account.runs[0].settled = false;
        account.store_error = Some((ErrorKind::Timeout, "redis://h: fail: no answer".to_owned()));
        let verdict = judge(&account, 0, Some(15));
        assert_eq!((verdict.code, verdict.result), (3, "failure"));
        let told = "billing@2026-11-21T14Z: attempt 1 ended with exit code 3, but the outcome was not recorded: redis://h: fail: no answer; \
                    once the lease expires, another node may run the slot again";
        assert_eq!(verdict.told, [told]);
        account.past = true;
        let told = "billing@2026-11-21T14Z: attempt 1 ended with exit code 3, but the outcome was not recorded: redis://h: fail: no answer; \
                    no node starts a slot that is over: if the work is done, `cronward mark-done billing@2026-11-21T14Z`";
        assert_eq!(judge(&account, 0, None).told, [told]);
    }

    #[test]
    fn a_store_that_is_away_is_one_line_and_never_the_skip_code() {
        let away = |kind| Account { store_error: Some((kind, "redis://h: claim: refused".to_owned())), ..account() };
        let verdict = judge(&away(ErrorKind::Unavailable), 0, None);
        assert_eq!((verdict.code, verdict.result), (75, "store_unavailable"));
        assert_eq!(
            verdict.told,
            [
                "redis://h: claim: refused; check that the store is running and reachable, then try again; the command was not started"
            ]
        );
        assert_eq!(judge(&away(ErrorKind::Denied), 0, None).code, 69);
    }

    #[test]
    fn an_overlap_that_cannot_be_ruled_out_is_told() {
        let mut account = ran(Outcome::Success, Some(0), None);
        account.runs[0].lost = vec![crate::drive::Lost::Lease];
        let verdict = judge(&account, 0, None);
        assert_eq!(verdict.code, 0);
        assert!(verdict.told[0].contains("may have overlapped"), "{:?}", verdict.told);
    }

    #[test]
    fn a_signal_before_anything_began_is_what_a_shell_makes_of_it() {
        assert_eq!(judge(&account(), 0, Some(15)).code, 143);
    }
}
