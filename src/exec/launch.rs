//! Starting a command and holding on to it.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::exec::attend::{Attendant, Renewals};
use crate::exec::capture::Capture;
use crate::exec::passing::{Stream, Streams};
use crate::exec::plan::Plan;
use crate::exec::refusal::Refusal;
use crate::exec::{Environment, Running, env_file, environment, placeholders, shim};
use crate::job::{CommandSpec, Program};
use crate::slot::RunContext;

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
    inherited: Environment,
    streams: Streams,
}

/// A shim that was started, and our ends of what it holds.
struct Started {
    shim: Child,
    socket: StdUnixStream,
    pipes: Vec<(OwnedFd, Option<Stream>)>,
}

impl Launcher {
    /// `shim` is the `cronward` binary, started once for each run as the command's keeper. The path `/proc/self/exe` is
    /// the best one for the binary itself: it stays right when the file is replaced while the daemon runs. Commands inherit
    /// this process's environment; see [`Launcher::with_environment`].
    pub fn new(shim: PathBuf, output: Output) -> Self {
        let inherited = Environment::inherited(std::env::vars_os());
        Self { shim, output, inherited, streams: Streams::default() }
    }

    /// The same with another environment for commands to inherit.
    #[must_use]
    pub fn with_environment(self, inherited: Environment) -> Self {
        Self { inherited, ..self }
    }

    /// The same without the inherited variables in whose value `secret` stands. To be called with the store's url.
    #[must_use]
    pub fn hiding(self, secret: &str) -> Self {
        Self { inherited: self.inherited.hiding(secret), ..self }
    }

    /// Starts a command. A command that cannot be started is no error: its `wait` says so. Does not wait for the start
    /// itself, only for the shim's. Needs a tokio runtime with its drivers enabled.
    ///
    /// `lease` is by when the command has to be over, where it must not outlast its lease, and is moved on after each renewal.
    /// Its shim goes by the last that it was told, also while this process stands still.
    pub async fn launch(&self, command: &CommandSpec, run: &RunContext, lease: Renewals) -> Running {
        match self.try_launch(command, run, lease).await {
            Ok(running) => running,
            Err(refusal) => Running::never(refusal.into()),
        }
    }

    /// Waits until the output of all commands that have ended has been passed on, at the pace of whoever reads it, or until
    /// nobody reads it any more. A process that ends before that loses the rest. No command is to run any more. The answer is a
    /// line for each stream that could not be written, where the run's own end has not told it.
    pub async fn passed_on(&self) -> Vec<String> {
        self.streams.passed_on().await
    }

    async fn try_launch(&self, command: &CommandSpec, run: &RunContext, lease: Renewals) -> Result<Running, Refusal> {
        let plan = self.plan(command, run).await?;
        let (path, output, inherited) = (self.shim.clone(), self.output, self.inherited.clone());
        let label = run.slot.to_string();
        // Reading the binary may take the disk's time.
        let started = tokio::task::spawn_blocking(move || start(&path, &label, output, inherited));
        let in_shim =
            |error| Refusal::cannot_run(format_args!("the shim {} cannot be started: {error}", self.shim.display()));
        let started = started.await.map_err(io::Error::other).flatten().map_err(in_shim)?;
        self.attend(started, plan, lease, command).map_err(in_shim)
    }

    fn attend(&self, started: Started, plan: Plan, lease: Renewals, command: &CommandSpec) -> io::Result<Running> {
        let Started { shim, socket, pipes } = started;
        socket.set_nonblocking(true)?;
        let (sender, requests) = mpsc::unbounded_channel();
        let socket = UnixStream::from_std(socket)?;
        let pass_on = |stream: Option<Stream>| stream.map(|stream| self.streams.begin(stream));
        let pipes = pipes.into_iter().map(|(pipe, stream)| (pipe, pass_on(stream))).collect();
        let capture = Capture::begin(pipes, command.output_limit)?;
        let begun = CancellationToken::new();
        let guard = Some(begun.clone().drop_guard());
        let success_codes = command.success_codes.clone();
        let attendant = Attendant { shim, socket, plan, requests, lease, begun: guard, capture, success_codes };
        Ok(Running::attended(sender, begun, tokio::spawn(attendant.attend())))
    }

    async fn plan(&self, command: &CommandSpec, run: &RunContext) -> Result<Plan, Refusal> {
        Ok(Plan {
            argv: argv(&command.program, run)?,
            cwd: command.cwd.clone().map(PathBuf::into_os_string).unwrap_or_default(),
            user: command.user.clone().unwrap_or_default(),
            group: command.group.clone().unwrap_or_default(),
            lease: None,
            kill_mode: command.kill_mode,
            env: self.environment(command, run).await?.into_variables(),
        })
    }

    async fn environment(&self, command: &CommandSpec, run: &RunContext) -> Result<Environment, Refusal> {
        let mut environment = self.inherited.clone();
        if command.user.is_some() {
            environment = environment.without_account();
        }
        if let Some(path) = &command.env_file {
            environment.extend(read_env_file(path).await?);
        }
        environment.extend(&command.env);
        environment.extend(environment::variables(run));
        Ok(environment)
    }
}

fn argv(program: &Program, run: &RunContext) -> Result<Vec<OsString>, Refusal> {
    match program {
        Program::Shell(line) => Ok(["/bin/sh", "-c", line].map(OsString::from).into()),
        Program::Direct(words) => {
            let fill = |word: &String| placeholders::fill(word, run).map(OsString::from);
            let argv = words.iter().map(fill).collect::<Result<_, _>>();
            argv.map_err(|error| Refusal::cannot_run(format_args!("command: {error}")))
        }
    }
}

async fn read_env_file(path: &Path) -> Result<Vec<(String, String)>, Refusal> {
    let unreadable =
        |error: &dyn std::fmt::Display| Refusal::cannot_run(format_args!("env_file {}: {error}", path.display()));
    let bytes = tokio::fs::read(path).await.map_err(|error| unreadable(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable(&"it is not UTF-8 text"))?;
    env_file::parse(path, &text).map_err(Refusal::cannot_run)
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
fn start(path: &Path, label: &str, output: Output, inherited: Environment) -> io::Result<Started> {
    let (socket, theirs) = StdUnixStream::pair()?;
    let (pipes, stdout, stderr) = pipes(output)?;
    let stdin = io::stdin();
    let passed = output != Output::Capture && !io::IsTerminal::is_terminal(&stdin);
    shim::send_greeting(&socket, passed.then_some(stdin.as_fd()))?;
    let mut command = Command::new(path);
    command.arg0("cronward").args([shim::ARGUMENT, shim::VERSION, label]);
    command.env_clear().envs(inherited.into_variables());
    // A group of its own: Ctrl-C is for the daemon, which then decides.
    command.process_group(0);
    command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(stdout).stderr(stderr);
    // The command goes out of scope here, and with it the writing ends of the pipes.
    Ok(Started { shim: command.spawn()?, socket, pipes })
}
