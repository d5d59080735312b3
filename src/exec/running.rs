//! A started command, as its owner holds it, and the task in the daemon that attends to its shim: hands it the plan, passes
//! signals on, takes its reports, reads the output. The task's end of the socket is what keeps the command alive: whenever this task
//! goes, so does the command.
//!
//! A shim may hang before it has started anything: a directory server or a network file system that does not answer. Then it hears
//! nothing, and whoever ends its run kills it after [`STARTING`].

use std::ffi::OsString;
use std::pin::Pin;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::ReadHalf;
use tokio::process::Child;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::clock::Mono;
use crate::exec::capture::Capture;
use crate::exec::messages::{CommandPlan, Refusal, Request, ShimReport};
use crate::exec::orphans::Keeper;
use crate::exec::outbox::Outbox;
use crate::slot::{Exit, ExitStatus, LeaseDeadline, Standstill};

/// How long a shim that is still to start its command has to hear that nobody wants it any more. It takes milliseconds, on a busy
/// machine more.
const STARTING: Duration = Duration::from_secs(2);

/// How long the end of a shim that was killed is waited for. One that hangs in the kernel executes nothing any more either.
const DYING: Duration = Duration::from_secs(1);

/// A started command. Dropping it kills its whole group, whatever left the group, and reaps the shim.
#[derive(Debug)]
pub struct Running {
    requests: Option<UnboundedSender<Request>>,
    begun: CancellationToken,
    end: End,
}

#[derive(Debug)]
enum End {
    Awaited(JoinHandle<Exit>),
    Known(Exit),
}

impl Running {
    /// With an attendant, which takes requests, says when the command has begun, and ends with it.
    pub(super) const fn attended(
        requests: UnboundedSender<Request>,
        begun: CancellationToken,
        attendant: JoinHandle<Exit>,
    ) -> Self {
        Self { requests: Some(requests), begun, end: End::Awaited(attendant) }
    }

    /// Never started.
    pub(super) fn never(status: ExitStatus) -> Self {
        Self { requests: None, begun: CancellationToken::new(), end: End::Known(Exit::of(status)) }
    }

    /// Ends once the command itself has begun. Of a command that never begins only [`Running::wait`] ends.
    pub fn begun(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        self.begun.clone().cancelled_owned()
    }

    /// Sends TERM to the group, once, and wakes what of it is stopped.
    pub fn terminate(&self) {
        self.send(Request::Stop);
    }

    /// Sends KILL to the group and everything that left it.
    pub fn kill(&self) {
        self.send(Request::Kill);
    }

    /// Passes a signal on to the group, by number; for `cronward exec`. Numbers that are no named signal do nothing.
    pub fn signal(&self, number: i32) {
        if let Some(signal) = Signal::from_named_raw(number) {
            self.send(Request::Signal(signal));
        }
    }

    /// Waits for its end: the command has ended, nothing that it started is left, and its output has been read. Whether that
    /// has been passed on as well is another question: [`crate::exec::Launcher::passed_on`].
    /// Cancel-safe; once ended it answers the same again.
    pub async fn wait(&mut self) -> Exit {
        match &mut self.end {
            End::Known(exit) => exit.clone(),
            End::Awaited(attendant) => {
                let exit = attendant.await.unwrap_or_else(|error| abandoned(&error));
                self.end = End::Known(exit.clone());
                exit
            }
        }
    }

    fn send(&self, request: Request) {
        if let Some(requests) = &self.requests {
            // Nobody takes it any more once the command has ended.
            let _ = requests.send(request);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The attendant is gone, because the runtime ends: its socket is closed, and that kills the command.
fn abandoned(error: &JoinError) -> Exit {
    let note = Some(format!("it was killed because nobody attends to it any more: {error}"));
    Exit { note, ..Exit::of(ExitStatus::Signal(Signal::KILL.as_raw())) }
}

/// By when a command has to be over unless its lease is renewed; none where it may outlast it.
pub type Renewals = watch::Receiver<Option<LeaseDeadline>>;

/// Everything that belongs to one started shim.
#[derive(Debug)]
pub(super) struct Attendant {
    /// The shim.
    pub(super) shim: Keeper,
    /// Our end of the socket.
    pub(super) socket: UnixStream,
    /// The plan.
    pub(super) plan: CommandPlan,
    /// What is asked of the shim.
    pub(super) requests: UnboundedReceiver<Request>,
    /// Moves on with each renewal.
    pub(super) lease: Renewals,
    /// Cancelled when the command has begun; none once that is settled.
    pub(super) begun: Option<CancellationToken>,
    /// The readers of the output.
    pub(super) capture: Capture,
    /// The exit codes that mean success.
    pub(super) success_codes: Vec<i32>,
}

/// What the shim has told.
#[derive(Debug, Default)]
struct RunProgress {
    /// What is to become the command.
    starting: Option<Pid>,
    command: Option<Pid>,
    /// With which signal somebody ended it before it had begun, after which the shim was killed.
    given_up: Option<Signal>,
    /// The shim was told to stop before it had started anything.
    unstarted: bool,
    status: Option<ExitStatus>,
    ended: Option<Mono>,
    standstill: Option<Standstill>,
    lapsed: Option<Mono>,
    left: usize,
    survivors: usize,
}

impl Attendant {
    /// Attends to the end: of the command, of what it left, and of the shim.
    pub(super) async fn attend(mut self) -> Exit {
        let story = self.converse().await;
        // It ends by itself after its last report, or at the latest because the socket is closed now.
        drop(self.socket);
        if story.given_up.is_some() {
            let _ = tokio::time::timeout(DYING, self.shim.wait()).await;
        } else {
            let _ = self.shim.wait().await;
        }
        if let (Some(command), None) = (story.command.or(story.starting), &story.status) {
            // The shim was killed, and with it the command itself (PR_SET_PDEATHSIG); this is for the rest of its group.
            let _ = kill_process_group(command, Signal::KILL);
        }
        let (output, unwritten) = self.capture.finish().await;
        let RunProgress { ended, standstill, lapsed, .. } = story;
        let exit =
            Exit { note: story.note(&self.plan), ended, standstill, lapsed, status: story.into_status(), output };
        without_output(exit, unwritten, &self.success_codes)
    }

    async fn converse(&mut self) -> RunProgress {
        let (reader, mut writer) = self.socket.split();
        let mut lines = BufReader::new(reader).lines();
        let mut story = RunProgress::default();
        // It may have moved on since the plan was made.
        self.plan.lease = *self.lease.borrow_and_update();
        let mut outbox = match self.plan.encode() {
            Ok(plan) => Outbox::new(plan),
            Err(refusal) => return RunProgress { status: Some(refusal.into()), ..story },
        };
        let mut unwanted: Option<Unwanted> = None;
        loop {
            tokio::select! {
                // What was reported counts before patience ends: a command that has begun is stopped, not killed.
                biased;
                report = next_report(&mut lines) => match report {
                    Some(report) => {
                        if !matches!(report, ShimReport::Starting(_)) {
                            unwanted = None;
                            let begun = self.begun.take().filter(|_| report.is_of_a_start());
                            begun.into_iter().for_each(|begun| begun.cancel());
                        }
                        if story.takes_last(report) {
                            return story;
                        }
                    }
                    None => return story,
                },
                Some(request) = self.requests.recv() => {
                    if matches!(request, Request::Stop | Request::Kill) {
                        wake(&self.shim);
                    }
                    if let (Some(signal), Some(_), None) = (request.ending(), &self.begun, &unwanted) {
                        unwanted = Some(Unwanted { signal, patience: Box::pin(patience()) });
                    }
                    outbox.put(request);
                }
                Ok(()) = self.lease.changed() => {
                    let renewed = *self.lease.borrow_and_update();
                    renewed.into_iter().for_each(|lease| outbox.put(Request::Lease(lease)));
                }
                () = outbox.write(&mut writer), if outbox.is_waiting() => {}
                signal = given_up(&mut unwanted) => {
                    let _ = self.shim.start_kill();
                    // What it has said before. Whoever it had forked may hold the socket open, and hang.
                    while let Ok(Some(report)) = tokio::time::timeout(DYING, next_report(&mut lines)).await {
                        if story.takes_last(report) {
                            return story;
                        }
                    }
                    return RunProgress { given_up: Some(signal), ..story };
                }
            }
        }
    }
}

/// Somebody ends a run whose command has not begun yet.
struct Unwanted {
    signal: Signal,
    patience: Pin<Box<dyn Future<Output = ()> + Send>>,
}

#[allow(clippy::disallowed_methods, reason = "the one wait of this file, for a shim that may hear nothing")]
async fn patience() {
    tokio::time::sleep(STARTING).await;
}

/// Ends when the patience with a shim does.
async fn given_up(unwanted: &mut Option<Unwanted>) -> Signal {
    match unwanted {
        Some(Unwanted { signal, patience }) => {
            patience.await;
            *signal
        }
        None => std::future::pending().await,
    }
}

/// A shim that was stopped (SIGSTOP) would not hear that it is to stop its command. It has not been waited for, so its number
/// is its own.
fn wake(shim: &Child) {
    let number = shim.id().and_then(|number| i32::try_from(number).ok());
    if let Some(pid) = number.and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::CONT);
    }
}

async fn next_report(lines: &mut Lines<BufReader<ReadHalf<'_>>>) -> Option<ShimReport> {
    ShimReport::parse(&lines.next_line().await.ok()??)
}

/// The end of a run whose output could not be written: whoever reads it has not what the command believes to have written, so
/// it has not succeeded.
fn without_output(mut exit: Exit, unwritten: Vec<String>, success_codes: &[i32]) -> Exit {
    if unwritten.is_empty() {
        return exit;
    }
    let mut notes = unwritten;
    match exit.status {
        ExitStatus::Code(code) if success_codes.contains(&code) => {
            notes.push(format!("the command itself ended with exit code {code}"));
            exit.status = ExitStatus::OutputLost;
        }
        _ => {}
    }
    notes.extend(exit.note.take());
    Exit { note: Some(notes.join("; ")), ..exit }
}

impl RunProgress {
    /// Takes a report; true when it was the last one.
    fn takes_last(&mut self, report: ShimReport) -> bool {
        match report {
            ShimReport::Starting(pid) => self.starting = Pid::from_raw(pid),
            ShimReport::Started(pid) => self.command = Pid::from_raw(pid),
            ShimReport::StoodStill(standstill) => self.standstill = Some(standstill),
            ShimReport::Exited(code, at) => (self.status, self.ended) = (Some(ExitStatus::Code(code)), Some(at)),
            ShimReport::Signalled(signal, at) => {
                (self.status, self.ended) = (Some(ExitStatus::Signal(signal)), Some(at));
            }
            ShimReport::Refused(refusal) => {
                self.status = Some(refusal.into());
                return true;
            }
            ShimReport::Unstarted(signal) => {
                (self.unstarted, self.status) = (true, Some(ExitStatus::Signal(signal)));
                return true;
            }
            ShimReport::Lapsed(at) => self.lapsed = Some(at),
            ShimReport::Swept { left, survivors } => {
                (self.left, self.survivors) = (left, survivors);
                return true;
            }
        }
        false
    }

    fn note(&self, plan: &CommandPlan) -> Option<String> {
        let lost = self.status.is_none().then(|| self.loss(plan)).flatten();
        let unstarted = self.unstarted.then(|| "it was stopped before it was started".to_owned());
        let lapsed =
            self.lapsed.map(|_| "its lease or lock was not renewed in time, so its keeper stopped it".to_owned());
        let left = (self.left > 0).then(|| match self.left {
            1 => "it left 1 process behind, which was stopped".to_owned(),
            left => format!("it left {left} processes behind, which were stopped"),
        });
        let survivors =
            (self.survivors > 0).then(|| format!("{} of its processes could not be killed", self.survivors));
        let notes: Vec<_> = [lost, unstarted, lapsed, left, survivors].into_iter().flatten().collect();
        (!notes.is_empty()).then(|| notes.join("; "))
    }

    /// Why nobody knows how it ended.
    fn loss(&self, plan: &CommandPlan) -> Option<String> {
        match (self.command, self.starting, self.given_up) {
            (Some(_), ..) => Some(
                "its keeper was killed, and with it the command; what had left its process group may live on"
                    .to_owned(),
            ),
            (None, Some(_), _) => {
                let program = plan.argv.first().map(OsString::as_os_str).unwrap_or_default();
                Some(format!("it was killed before it was known to have started, while {program:?} was being executed"))
            }
            (None, None, Some(_)) => Some(format!("it was stopped before it was started, {}", hanging(plan))),
            (None, None, None) => None,
        }
    }

    fn into_status(self) -> ExitStatus {
        let killed_by = match (self.command.or(self.starting), self.given_up) {
            (Some(_), _) => Some(Signal::KILL),
            (None, given_up) => given_up,
        };
        let lost = || match killed_by {
            Some(signal) => ExitStatus::Signal(signal.as_raw()),
            None => Refusal::cannot_run("the shim that was to start it ended before it did").into(),
        };
        self.status.unwrap_or_else(lost)
    }
}

/// What a shim may wait for before it executes the program.
fn hanging(plan: &CommandPlan) -> String {
    let accounts = [("user", &plan.user), ("group", &plan.group)];
    let named =
        accounts.into_iter().filter(|(_, name)| !name.is_empty()).map(|(what, name)| format!("its {what} {name:?}"));
    let cwd = (!plan.cwd.is_empty()).then(|| format!("its cwd {:?}", plan.cwd));
    let parts: Vec<_> = named.chain(cwd).collect();
    if parts.is_empty() {
        return "because its shim did not answer".to_owned();
    }
    format!("while {} was looked up", parts.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn story(reports: &[ShimReport]) -> (Option<String>, ExitStatus) {
        let mut story = RunProgress::default();
        for report in reports {
            story.takes_last(report.clone());
        }
        (story.note(&CommandPlan::default()), story.into_status())
    }

    #[test]
    fn a_success_whose_output_was_lost_is_none() {
        let lost = |status| {
            let exit = Exit { note: Some("left".to_owned()), ..Exit::of(status) };
            let exit = without_output(exit, vec!["full".to_owned()], &[0, 74]);
            (exit.status, exit.note.unwrap())
        };
        let told =
            |code| (ExitStatus::OutputLost, format!("full; the command itself ended with exit code {code}; left"));
        assert_eq!([0, 74].map(|code| lost(ExitStatus::Code(code))), [0, 74].map(told));
        for status in [ExitStatus::Code(1), ExitStatus::Signal(13)] {
            assert_eq!(lost(status.clone()), (status, "full; left".to_owned()));
        }
        let whole = Exit::of(ExitStatus::Code(0));
        assert_eq!(without_output(whole.clone(), Vec::new(), &[0]), whole);
    }

    #[test]
    fn an_orderly_end_has_no_note() {
        let reports = [
            ShimReport::Started(7),
            ShimReport::Exited(3, Mono::default()),
            ShimReport::Swept { left: 0, survivors: 0 },
        ];
        assert_eq!(story(&reports), (None, ExitStatus::Code(3)));
    }

    #[test]
    fn what_was_left_behind_is_counted() {
        let end = |left, survivors| {
            story(&[ShimReport::Signalled(15, Mono::default()), ShimReport::Swept { left, survivors }]).0.unwrap()
        };
        assert_eq!(end(1, 0), "it left 1 process behind, which was stopped");
        assert_eq!(end(2, 1), "it left 2 processes behind, which were stopped; 1 of its processes could not be killed");
    }

    #[test]
    fn a_shim_that_vanishes_before_the_start_means_not_started() {
        let (note, status) = story(&[]);
        assert!(matches!(status, ExitStatus::NotStarted { code: 126, .. }) && note.is_none());
    }

    #[test]
    fn a_shim_that_vanishes_later_means_killed() {
        for (reports, told) in
            [(&[ShimReport::Started(7)], "its keeper"), (&[ShimReport::Starting(7)], "before it was known")]
        {
            let (note, status) = story(reports);
            assert_eq!(status, ExitStatus::Signal(9));
            assert!(note.unwrap().contains(told));
        }
    }

    #[test]
    fn what_was_stopped_before_it_was_started_ended_by_that_signal() {
        let (note, status) = story(&[ShimReport::Unstarted(15)]);
        assert_eq!((note.as_deref(), status), (Some("it was stopped before it was started"), ExitStatus::Signal(15)));
    }

    #[test]
    fn a_program_that_cannot_be_executed_was_refused_and_not_killed() {
        let refusal = Refusal::not_found("no such program");
        let (note, status) = story(&[ShimReport::Starting(7), ShimReport::Refused(refusal.clone())]);
        assert_eq!((note, status), (None, refusal.into()));
    }
}
