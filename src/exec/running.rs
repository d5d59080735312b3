//! A started command, as its owner holds it. Does nothing itself: its attendant does.

use rustix::process::Signal;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::exec::request::Request;
use crate::slot::{Exit, ExitStatus};

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
        let begun = CancellationToken::new();
        begun.cancel();
        Self { requests: None, begun, end: End::Known(Exit::of(status)) }
    }

    /// Ends once the command itself has begun, or it is known that it never will.
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
