//! Starting a command and holding on to it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::Signal;
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::exec::capture::Capture;
use crate::exec::env_file::{EnvFiles, Variables};
use crate::exec::messages::{CommandPlan, Refusal, Request};
use crate::exec::orphans::Keeper;
use crate::exec::passing::{Stream, Streams};
use crate::exec::running::{Attendant, Renewals};
use crate::exec::{Environment, PlaceholderError, Running, environment, shim};
use crate::job::{CommandSpec, Program};
use crate::slot::{Exit, ExitStatus, RunContext};

/// What becomes of a command's output, besides the tail that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Only the tail is kept. Stdout and stderr are one pipe, so that the tail has them exactly as they came.
    Capture,
    /// It is also passed on to this process's own stdout and stderr, and stdin is passed in, unless that is a terminal:
    /// the command is not in the terminal's foreground and would be stopped for reading. Where both are one file, as under
    /// cron, the command's are one pipe and everything stays in its order; otherwise they are two, and the tail has them
    /// nearly as they came.
    PassThrough,
    /// The same, with both passed on to stderr: stdout is this process's own.
    ToStderr,
}

/// Starts commands.
#[derive(Clone, Debug)]
pub struct Launcher {
    shim: PathBuf,
    output: Output,
    /// Of all clones.
    inherited: Arc<Mutex<Environment>>,
    streams: Streams,
    env_files: EnvFiles,
    /// What is inherited of the account holds; see [`Launcher::within_a_session`].
    in_session: bool,
}

/// What a command is started for.
#[derive(Clone, Debug)]
enum Occasion {
    /// An attempt at a slot: it is told of that, in variables and by placeholders.
    Run(Box<RunContext>),
    /// Something else, by the name that `ps` shows of its shim. It is told what its own `env` says, and its words are as they are.
    Other(String),
    /// The same, and this is all that it reads on its standard input.
    #[cfg_attr(not(feature = "notify"), allow(dead_code, reason = "only messages feed their commands"))]
    Fed(String, Vec<u8>),
}

impl Occasion {
    fn label(&self) -> String {
        match self {
            Self::Run(run) => run.slot.to_string(),
            Self::Other(label) | Self::Fed(label, _) => label.clone(),
        }
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Run(run) => environment::variables(run),
            Self::Other(_) | Self::Fed(..) => Vec::new(),
        }
    }

    fn word(&self, word: &str) -> Result<String, PlaceholderError> {
        match self {
            Self::Run(run) => environment::fill_placeholders(word, run),
            Self::Other(_) | Self::Fed(..) => Ok(word.to_owned()),
        }
    }

    /// What it reads, as the end of a pipe that holds all of it.
    fn input(&self) -> io::Result<Option<io::PipeReader>> {
        let Self::Fed(_, input) = self else { return Ok(None) };
        let (reader, mut writer) = io::pipe()?;
        // Within what a pipe holds, a write waits for nobody.
        writer.write_all(input.get(..input.len().min(LARGEST_INPUT)).unwrap_or_default())?;
        Ok(Some(reader))
    }
}

/// What a command is fed: a pipe holds as much.
const LARGEST_INPUT: usize = 60 * 1024;

/// What ties a run to its owner.
struct Ties {
    requests: mpsc::UnboundedReceiver<Request>,
    lease: Renewals,
    begun: CancellationToken,
}

/// A shim that was started, and our ends of what it holds.
struct Started {
    shim: Keeper,
    socket: StdUnixStream,
    pipes: Vec<(OwnedFd, Option<Stream>)>,
}

impl Launcher {
    /// `shim` is the `cronward` binary, started once for each run as the command's keeper. The path `/proc/self/exe` is
    /// the best one for the binary itself: it stays right when the file is replaced while the daemon runs. Commands inherit
    /// this process's environment; see [`Launcher::with_environment`].
    pub fn new(shim: PathBuf, output: Output) -> Self {
        let inherited = Arc::new(Mutex::new(Environment::inherited(std::env::vars_os())));
        Self { shim, output, inherited, streams: Streams::default(), env_files: EnvFiles::default(), in_session: false }
    }

    /// For a process that itself runs for its caller, such as cron or a person: what its environment says of the account (HOME, LOGNAME,
    /// SHELL, USER) is meant, and only what is missing comes from the account's entry. Otherwise the entry decides.
    #[must_use]
    pub fn within_a_session(self) -> Self {
        Self { in_session: true, ..self }
    }

    /// The same with another environment for commands to inherit.
    #[must_use]
    pub fn with_environment(self, inherited: Environment) -> Self {
        Self { inherited: Arc::new(Mutex::new(inherited)), ..self }
    }

    /// From now on no command that this or a clone of it starts inherits a variable in whose value one of these secrets stands. To be
    /// called with those of the store's url.
    pub fn hide<'s>(&self, secrets: impl IntoIterator<Item = &'s String>) {
        let mut inherited = self.inherited();
        secrets.into_iter().for_each(|secret| inherited.hide(secret));
    }

    fn inherited(&self) -> MutexGuard<'_, Environment> {
        self.inherited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a command. A command that cannot be started is no error: its `wait` says so. Does not wait for the start
    /// itself, only for the shim's. Needs a tokio runtime with its drivers enabled.
    ///
    /// `lease` is by when the command has to be over, where it must not outlast its lease, and is moved on after each renewal.
    /// Its shim goes by the last that it was told, also while this process stands still.
    ///
    /// Where there is an `env_file`, it is read after this has returned, so that the run can be stopped meanwhile.
    pub async fn launch(&self, command: &CommandSpec, run: &RunContext, lease: Renewals) -> Running {
        self.begin(command, Occasion::Run(Box::new(run.clone())), lease).await
    }

    /// The same for a command that is no attempt at a slot. `label` is what `ps` shows of its shim.
    pub async fn launch_other(&self, command: &CommandSpec, label: String, lease: Renewals) -> Running {
        self.begin(command, Occasion::Other(label), lease).await
    }

    /// The same for one that reads `input` on its standard input, at most 60 KiB of it.
    #[cfg(feature = "notify")]
    pub(crate) async fn launch_fed(
        &self,
        command: &CommandSpec,
        label: String,
        input: Vec<u8>,
        lease: Renewals,
    ) -> Running {
        self.begin(command, Occasion::Fed(label, input), lease).await
    }

    async fn begin(&self, command: &CommandSpec, occasion: Occasion, lease: Renewals) -> Running {
        let (sender, requests) = mpsc::unbounded_channel();
        let begun = CancellationToken::new();
        let ties = Ties { requests, lease, begun: begun.clone() };
        if let Some(path) = command.env_file.clone() {
            let attendant = self.clone().launch_with_file(path, command.clone(), occasion, ties);
            return Running::attended(sender, begun, tokio::spawn(attendant));
        }
        match self.try_launch(command, &occasion, Vec::new(), ties).await {
            Ok(attendant) => Running::attended(sender, begun, tokio::spawn(attendant.attend())),
            Err(refusal) => Running::never(refusal.into()),
        }
    }

    /// Waits until the output of all commands that have ended has been passed on, at the pace of whoever reads it, or until
    /// nobody reads it any more. A process that ends before that loses the rest. No command is to run any more. The answer is a
    /// line for each stream that could not be written, where the run's own end has not told it.
    pub async fn passed_on(&self) -> Vec<String> {
        self.streams.passed_on().await
    }

    /// Reads the `env_file`, starts the command and attends to it.
    async fn launch_with_file(self, path: PathBuf, command: CommandSpec, occasion: Occasion, mut ties: Ties) -> Exit {
        let read = tokio::select! {
            biased;
            signal = stopped(&mut ties.requests) => return stopped_before(signal, &path),
            read = self.env_files.read(&path, command.user.as_deref()) => read,
        };
        let launched = match read {
            Ok(variables) => self.try_launch(&command, &occasion, variables, ties).await,
            Err(refusal) => Err(refusal),
        };
        match launched {
            Ok(attendant) => attendant.attend().await,
            Err(refusal) => Exit::of(refusal.into()),
        }
    }

    /// `variables` are those of the `env_file`.
    async fn try_launch(
        &self,
        command: &CommandSpec,
        occasion: &Occasion,
        variables: Variables,
        ties: Ties,
    ) -> Result<Attendant, Refusal> {
        let plan = self.plan(command, occasion, variables)?;
        let (path, output, inherited) = (self.shim.clone(), self.output, self.inherited().clone());
        let label = occasion.label();
        let in_shim = |error| {
            Refusal::of_error(&error, format_args!("the shim {} cannot be started: {error}", self.shim.display()))
        };
        let input = occasion.input().map_err(in_shim)?;
        let started = in_thread(move || start(&path, &label, output, inherited, input)).await.map_err(in_shim)?;
        self.attendant(started, plan, ties, command).map_err(in_shim)
    }

    fn attendant(
        &self,
        started: Started,
        plan: CommandPlan,
        ties: Ties,
        command: &CommandSpec,
    ) -> io::Result<Attendant> {
        let Started { shim, socket, pipes } = started;
        let Ties { requests, lease, begun } = ties;
        socket.set_nonblocking(true)?;
        let socket = UnixStream::from_std(socket)?;
        let pass_on = |stream: Option<Stream>| stream.map(|stream| self.streams.begin(stream));
        let pipes = pipes.into_iter().map(|(pipe, stream)| (pipe, pass_on(stream))).collect();
        let capture = Capture::begin(pipes, command.output_limit)?;
        let success_codes = command.success_codes.clone();
        Ok(Attendant { shim, socket, plan, requests, lease, begun: Some(begun), capture, success_codes })
    }

    fn plan(&self, command: &CommandSpec, occasion: &Occasion, variables: Variables) -> Result<CommandPlan, Refusal> {
        Ok(CommandPlan {
            argv: argv(&command.program, occasion)?,
            cwd: command.cwd.clone().map(PathBuf::into_os_string).unwrap_or_default(),
            user: command.user.clone().unwrap_or_default(),
            group: command.group.clone().unwrap_or_default(),
            lease: None,
            kill_mode: command.kill_mode,
            fallback: self.fallback(command).into_variables(),
            env: self.environment(command, occasion, variables).into_variables(),
        })
    }

    /// What is inherited of the account, for a machine that has no entry of it.
    fn fallback(&self, command: &CommandSpec) -> Environment {
        let of_another = command.user.is_some() || self.in_session;
        if of_another { Environment::default() } else { self.inherited().clone().only_account() }
    }

    fn environment(&self, command: &CommandSpec, occasion: &Occasion, variables: Variables) -> Environment {
        let mut environment = self.inherited().clone();
        if command.user.is_some() || !self.in_session {
            environment = environment.without_account();
        }
        environment.extend(variables);
        environment.extend(&command.env);
        environment.extend(occasion.variables());
        environment
    }
}

fn argv(program: &Program, occasion: &Occasion) -> Result<Vec<OsString>, Refusal> {
    match program {
        Program::Shell(line) => Ok(["/bin/sh", "-c", line].map(OsString::from).into()),
        Program::Direct(words) => {
            let fill = |word: &String| occasion.word(word).map(OsString::from);
            let argv = words.iter().map(fill).collect::<Result<_, _>>();
            argv.map_err(|error| Refusal::cannot_run(format_args!("command: {error}")))
        }
    }
}

/// The request that means the end, as the signal that it is.
async fn stopped(requests: &mut mpsc::UnboundedReceiver<Request>) -> Signal {
    loop {
        let Some(request) = requests.recv().await else { return Signal::KILL };
        if let Some(signal) = request.ending() {
            return signal;
        }
    }
}

fn stopped_before(signal: Signal, path: &Path) -> Exit {
    let note = format!("it was stopped before it was started, while its env_file {} was read", path.display());
    Exit { note: Some(note), ..Exit::of(ExitStatus::Signal(signal.as_raw())) }
}

/// Runs a step in a thread of its own, because reading the binary may take the disk's time. A pool of threads would hold the step back,
/// or panic, where the machine lets it have no further thread.
async fn in_thread<T: Send + 'static>(step: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    let (runtime, (answer, answered)) = (Handle::current(), oneshot::channel());
    let stepping = move || {
        let _runtime = runtime.enter();
        // The run may not be wanted any more.
        drop(answer.send(step()));
    };
    std::thread::Builder::new().spawn(stepping)?;
    answered.await.map_err(io::Error::other)?
}

/// Our ends of the pipes, and the writing ends of the command's stdout and stderr.
type Pipes = (Vec<(OwnedFd, Option<Stream>)>, io::PipeWriter, io::PipeWriter);

fn pipes(output: Output) -> io::Result<Pipes> {
    let stream = match output {
        Output::Capture => None,
        Output::PassThrough if !are_one_file(&io::stdout(), &io::stderr()) => {
            let ((out_reader, out), (err_reader, err)) = (io::pipe()?, io::pipe()?);
            let readers = [(out_reader, Stream::Stdout), (err_reader, Stream::Stderr)];
            return Ok((readers.map(|(reader, stream)| (reader.into(), Some(stream))).into(), out, err));
        }
        Output::PassThrough => Some(Stream::Stdout),
        Output::ToStderr => Some(Stream::Stderr),
    };
    let (reader, writer) = io::pipe()?;
    Ok((vec![(reader.into(), stream)], writer.try_clone()?, writer))
}

/// Whether both are the same file, pipe, socket or terminal. One that is closed is none.
fn are_one_file(one: &impl AsFd, other: &impl AsFd) -> bool {
    let identity = |stream: BorrowedFd<'_>| {
        let found = File::from(stream.try_clone_to_owned()?).metadata()?;
        io::Result::Ok((found.dev(), found.ino()))
    };
    matches!((identity(one.as_fd()), identity(other.as_fd())), (Ok(one), Ok(other)) if one == other)
}

/// Starts the shim. The socket and the pipes are closed on exec from birth, so that no other command gets hold of them.
fn start(
    path: &Path,
    label: &str,
    output: Output,
    inherited: Environment,
    input: Option<io::PipeReader>,
) -> io::Result<Started> {
    let (socket, theirs) = StdUnixStream::pair()?;
    let (pipes, stdout, stderr) = pipes(output)?;
    let stdin = io::stdin();
    let passed = output != Output::Capture && !io::IsTerminal::is_terminal(&stdin);
    let own = passed.then_some(stdin.as_fd());
    shim::send_greeting(&socket, input.as_ref().map(AsFd::as_fd).or(own))?;
    let mut command = Command::new(path);
    command.arg0("cronward").args([shim::ARGUMENT, shim::VERSION, label]);
    command.env_clear().envs(inherited.into_variables());
    // A group of its own: Ctrl-C is for the daemon, which then decides.
    command.process_group(0);
    command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(stdout).stderr(stderr);
    // The command goes out of scope here, and with it the writing ends of the pipes.
    Ok(Started { shim: Keeper::start(&mut command)?, socket, pipes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_means_the_end_is_heard_before_the_command_is_started() {
        use Request::{Kill, Signal as Passed, Stop};
        for (told, heard) in [
            (vec![Passed(Signal::USR1), Stop], Signal::TERM),
            (vec![Passed(Signal::INT)], Signal::INT),
            (vec![Kill], Signal::KILL),
            (vec![], Signal::KILL),
        ] {
            let (sender, mut requests) = mpsc::unbounded_channel();
            told.iter().for_each(|request| sender.send(*request).unwrap());
            drop(sender);
            assert_eq!(stopped(&mut requests).await, heard, "{told:?}");
        }
    }
}
