//! The command line: which words there are, and what is called for each. Usage errors end with 64; what is said to them is one line,
//! with the thing and the way out.

use std::io::Write as _;

use clap::error::ErrorKind;
use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use nix::sys::signal::{SigSet, Signal};

use crate::admin::words::harmless;
use crate::cli::console::{self, Console};
use crate::cli::failure::{ExitCode, Failure};
#[cfg(feature = "notify")]
use crate::cli::notify;
use crate::cli::session::block_on;
use crate::cli::{
    attempts, check, completions, demo, doctor, forget, guarded, help, import, jobs, locks, next, nodes, run, setup,
    show, verbs, verify, watch, why,
};
#[cfg(feature = "http")]
use crate::cli::{healthcheck, token};
use crate::clock::SystemClock;
use crate::observe::logging;

/// A guard for cron jobs on a cluster: every slot's work is done once, and nothing is lost, repeated or overlapped
/// silently.
#[derive(Debug, Parser)]
#[command(
    name = "cronward",
    version,
    before_help = "Example: cronward run --config /etc/cronward/jobs.toml",
    after_help = "Exit codes: 0 done, 1 verify or import found something, doctor warns, locks are not free, a daemon is not well or a sink takes no message, 2 doctor found an error, 64 usage, 69 store refuses, 70 internal, 75 store unavailable (try again), 78 configuration.",
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
struct Cronward {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Run(run::RunArgs),
    Demo(demo::DemoArgs),
    Exec(Box<guarded::ExecArgs>),
    Lock(Box<guarded::LockArgs>),
    Init(setup::InitArgs),
    Check(check::CheckArgs),
    Next(next::NextArgs),
    Jobs(jobs::JobsArgs),
    Locks(locks::LocksArgs),
    Attempts(attempts::AttemptsArgs),
    Show(show::ShowArgs),
    Why(why::WhyArgs),
    Nodes(nodes::NodesArgs),
    Doctor(doctor::DoctorArgs),
    Logs(attempts::LogsArgs),
    Verify(verify::VerifyArgs),
    Trigger(guarded::TriggerArgs),
    Reset(verbs::ResetArgs),
    Unlock(verbs::UnlockArgs),
    MarkDone(verbs::MarkDoneArgs),
    Pause(verbs::PauseArgs),
    Resume(verbs::ResumeArgs),
    Forget(forget::ForgetArgs),
    Migrate(setup::MigrateArgs),
    #[cfg(feature = "http")]
    Token(token::TokenArgs),
    #[cfg(feature = "http")]
    Healthcheck(healthcheck::HealthcheckArgs),
    #[cfg(feature = "notify")]
    Notify(notify::NotifyArgs),
    Import(import::ImportArgs),
    Completions(completions::CompletionsArgs),
    Man(help::ManArgs),
    Help(help::HelpArgs),
}

/// The command line, for completions and manual pages.
pub fn command() -> clap::Command {
    Cronward::command()
}

/// Reads the command line, does what it says, and tells how that went.
pub fn main() -> std::process::ExitCode {
    tell_of_panics();
    let_full_files_be_errors();
    // A panic has told its place on stderr; a script still gets a code that means "internal".
    std::process::ExitCode::from(std::panic::catch_unwind(obey).unwrap_or(ExitCode::Internal as u8))
}

/// A write beyond the limit on the size of files (`ulimit -f`, `LimitFSIZE=`) raises SIGXFSZ, which would end the process without a word.
/// Blocked, the write fails with EFBIG, which is reported like a full disk. Threads inherit the mask; commands get an empty one from
/// their keeper.
fn let_full_files_be_errors() {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGXFSZ);
    // Without it the signal has its default.
    let _ = signals.thread_block();
}

/// A panic may be the end: what was logged before it is written first.
///
/// Where no thread can be started the runtime panics. That is no bug of the program, whose place anybody needs: it is one line. On the
/// main thread it is the end, too: a runtime that is half made waits for ever for the threads that it has.
fn tell_of_panics() {
    let of_a_bug = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        logging::let_last_lines_out();
        match panic.payload_as_str().and_then(missing_thread) {
            Some(failure) => {
                console::last_error(&failure);
                if std::thread::current().name() == Some("main") {
                    std::process::exit(ExitCode::Internal as i32);
                }
            }
            None => of_a_bug(panic),
        }
    }));
}

/// What is wrong, by the message of a panic of tokio.
fn missing_thread(panic: &str) -> Option<Failure> {
    let error = panic.strip_prefix("OS can't spawn worker thread: ")?;
    let way_out = "allow this user more processes (`ulimit -u`; `TasksMax=` of a service), then try again";
    Some(Failure::Internal(format!("cannot start a thread: {error}; {way_out}")))
}

fn obey() -> u8 {
    let mut console = Console::of_process();
    let parsed = command().try_get_matches().and_then(|matches| Cronward::from_arg_matches(&matches));
    match parsed {
        Ok(line) => finish(line.verb.call(&mut console), &mut console),
        Err(told) => explain_usage_error(&told, &command(), &mut console) as u8,
    }
}

impl Verb {
    fn call(&self, console: &mut Console) -> Result<(), Failure> {
        console.color &= !self.no_color();
        match self {
            Self::Run(args) => run::run(args, console),
            Self::Demo(args) => block_on(demo::demo(args, console)),
            Self::Exec(args) => block_on(guarded::exec(args, console)),
            Self::Lock(args) => block_on(guarded::lock(args, console)),
            Self::Trigger(args) => block_on(guarded::trigger(args, console)),
            Self::Init(args) => setup::init(args, console),
            Self::Check(args) => check::show(args, console),
            Self::Next(args) => next::list(args, &SystemClock, console),
            Self::Jobs(args) if args.watch => block_on(watch::watch(args, console)),
            Self::Jobs(args) => block_on(jobs::list(args, console)),
            Self::Locks(args) => block_on(locks::list(args, console)),
            Self::Attempts(args) => block_on(attempts::list(args, console)),
            Self::Show(args) => block_on(show::show(args, console)),
            Self::Why(args) => block_on(why::why(args, console)),
            Self::Nodes(args) => block_on(nodes::list(args, console)),
            Self::Doctor(args) => block_on(doctor::doctor(args, console)),
            Self::Logs(args) => block_on(attempts::logs(args, console)),
            Self::Verify(args) => verify::verify(args, console),
            Self::Reset(args) => block_on(verbs::reset(args, console)),
            Self::Unlock(args) => block_on(verbs::unlock(args, console)),
            Self::MarkDone(args) => block_on(verbs::mark_done(args, console)),
            Self::Pause(args) => block_on(verbs::pause(args, console)),
            Self::Resume(args) => block_on(verbs::resume(args, console)),
            Self::Forget(args) => block_on(forget::forget(args, console)),
            Self::Migrate(args) => block_on(setup::migrate(args, console)),
            #[cfg(feature = "http")]
            Self::Token(args) => token::token(args, console),
            #[cfg(feature = "http")]
            Self::Healthcheck(args) => healthcheck::healthcheck(args, console),
            #[cfg(feature = "notify")]
            Self::Notify(args) => block_on(notify::notify(args, console)),
            Self::Import(args) => import::import(args, console),
            Self::Completions(args) => completions::completions(args, command(), console),
            Self::Man(args) => help::man(args, command(), console),
            Self::Help(args) => help::help(args, command(), console),
        }
    }

    const fn no_color(&self) -> bool {
        match self {
            Self::Run(_)
            | Self::Logs(_)
            | Self::Verify(_)
            | Self::Exec(_)
            | Self::Lock(_)
            | Self::Trigger(_)
            | Self::Migrate(_)
            | Self::Import(_)
            | Self::Init(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Help(_) => false,
            #[cfg(feature = "http")]
            Self::Token(_) | Self::Healthcheck(_) => false,
            #[cfg(feature = "notify")]
            Self::Notify(_) => false,
            Self::Reset(args) => args.output.no_color,
            Self::Unlock(args) => args.output.no_color,
            Self::MarkDone(args) => args.output.no_color,
            Self::Pause(args) => args.output.no_color,
            Self::Resume(args) => args.output.no_color,
            Self::Forget(args) => args.output.no_color,
            Self::Demo(args) => args.no_color,
            Self::Check(args) => args.no_color,
            Self::Next(args) => args.output.no_color,
            Self::Jobs(args) => args.output.no_color,
            Self::Locks(args) => args.output.no_color,
            Self::Attempts(args) => args.output.no_color,
            Self::Show(args) => args.output.no_color,
            Self::Why(args) => args.output.no_color,
            Self::Nodes(args) => args.output.no_color,
            Self::Doctor(args) => args.output.no_color,
        }
    }
}

/// Hands the result on and turns a failure into its line and its code.
fn finish(result: Result<(), Failure>, console: &mut Console) -> u8 {
    let Err(failure) = result.and_then(|()| console.flush()) else { return ExitCode::Success as u8 };
    if let Failure::Child(code) = failure {
        return code;
    }
    let code = failure.exit_code();
    if code == ExitCode::Success {
        return code as u8;
    }
    // What was written before the failure comes first; that it cannot be written is the news only where it is all that is told.
    let written = console.flush();
    if !matches!(failure, Failure::Shown | Failure::Found | Failure::Faults) {
        console.error(&failure);
        return code as u8;
    }
    match written {
        Err(unwritten) if unwritten.exit_code() != ExitCode::Success => {
            console.error(&unwritten);
            unwritten.exit_code() as u8
        }
        Ok(()) | Err(_) => code as u8,
    }
}

/// Shows what clap has to say: help and version on stdout with 0, a wrong command line on stderr with 64.
fn explain_usage_error(told: &clap::Error, commands: &Command, console: &mut Console) -> ExitCode {
    if told.use_stderr() && told.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let verb = std::env::args_os().nth(1).and_then(|verb| commands.find_subcommand(verb));
        let line = one_line(told, verb);
        console.note(match not_text(std::env::args_os()).filter(|_| told.kind() == ErrorKind::InvalidUtf8) {
            Some(argument) => line.replacen("invalid UTF-8 was detected in one or more arguments", &argument, 1),
            None => line,
        });
        return ExitCode::Usage;
    }
    let written = told.print().and_then(|()| std::io::stdout().flush());
    if told.use_stderr() {
        return ExitCode::Usage;
    }
    // A reader that went away (`cronward --help | head -1`) is no failure.
    let Err(unwritten) = written.map_err(Failure::Output) else { return ExitCode::Success };
    if unwritten.exit_code() != ExitCode::Success {
        console.error(&unwritten);
    }
    unwritten.exit_code()
}

/// The first argument that is not UTF-8, by its place. A command's own arguments, which may be anything, come last.
fn not_text(arguments: impl Iterator<Item = std::ffi::OsString>) -> Option<String> {
    let (place, argument) = arguments.enumerate().skip(1).find(|(_, argument)| argument.to_str().is_none())?;
    let argument = argument.to_string_lossy();
    // A url may have a password.
    let shown = if argument.contains("://") { String::new() } else { format!(", {},", harmless(&argument)) };
    Some(format!("argument {place}{shown} is not UTF-8"))
}

/// clap's paragraphs as one line, like every other error: what is wrong, what may be meant, and whose help to read.
fn one_line(told: &clap::Error, verb: Option<&Command>) -> String {
    let text = told.to_string();
    let name = verb.map(|verb| format!(" {}", verb.get_name())).unwrap_or_default();
    if let Some(number) = signed(told.kind(), &text) {
        return format!(
            "error: unexpected argument '-{number}': a duration has no sign (2h), and an earlier slot follows its job (JOB@-1); see \
             `cronward{name} --help`"
        );
    }
    let mut parts: Vec<String> = Vec::new();
    let kept =
        |line: &&str| !line.is_empty() && !line.starts_with("Usage: ") && !line.starts_with("For more information");
    for line in text.lines().map(str::trim).filter(kept) {
        let line = line.strip_prefix("tip: ").unwrap_or(line);
        if let Some((verb, flag)) = misplaced(line) {
            return format!(
                "error: {flag} goes after the command: cronward {verb} {flag} …; see `cronward {verb} --help`"
            );
        }
        match parts.last_mut().filter(|last| last.ends_with(':')) {
            Some(last) => *last = format!("{last} {line}"),
            None => parts.push(line.to_owned()),
        }
    }
    let mut parts: Vec<String> = parts.iter().map(|part| shortened(part)).collect();
    parts.extend(way_out(told.kind(), &parts.join("; "), verb));
    format!("{}; see `cronward{name} --help`", parts.join("; "))
}

/// The first digit of a number with a minus, which clap takes for a flag.
fn signed(kind: ErrorKind, text: &str) -> Option<char> {
    let digit = text.strip_prefix("error: unexpected argument '-")?.chars().next()?;
    (kind == ErrorKind::UnknownArgument && digit.is_ascii_digit()).then_some(digit)
}

/// What clap says, which repeats words of the command line however long they are: its begin and its end say what is wrong.
fn shortened(part: &str) -> String {
    const KEPT: usize = 300;
    let length = part.chars().count();
    if length <= 2 * KEPT {
        return part.to_owned();
    }
    let (begin, end) = (part.chars().take(KEPT), part.chars().skip(length - KEPT));
    begin.chain(['…']).chain(end).collect()
}

/// The command, and its flag that was written before it, by clap's tip `'jobs --store' exists`.
fn misplaced(tip: &str) -> Option<(&str, &str)> {
    tip.strip_prefix('\'')?.strip_suffix("' exists")?.split_once(' ')
}

/// What to do, where clap says only what is wrong.
fn way_out(kind: ErrorKind, told: &str, verb: Option<&Command>) -> Option<String> {
    let suggests = told.contains("; a similar ") || told.contains("; some similar ");
    match kind {
        ErrorKind::MissingRequiredArgument if told.contains('<') => {
            example_of(verb?).map(|example| format!("write it as in `{example}`"))
        }
        ErrorKind::MissingRequiredArgument => Some("add it".to_owned()),
        ErrorKind::UnknownArgument if !suggests => Some("leave it out".to_owned()),
        ErrorKind::InvalidSubcommand if !suggests => Some("try one that `cronward --help` lists".to_owned()),
        ErrorKind::ArgumentConflict => Some("leave one of them out".to_owned()),
        ErrorKind::InvalidValue if told.ends_with("none was supplied") => Some("give one".to_owned()),
        _ => None,
    }
}

/// The command line with which a command's help begins; that of the command below it, where it needs one.
fn example_of(verb: &Command) -> Option<String> {
    let example = verb.get_before_help()?.to_string();
    Some(example.trim_start_matches("Example: ").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::cli::command;

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn an_argument_that_is_not_text_is_named_and_a_url_by_its_place_alone() {
        use std::os::unix::ffi::OsStringExt;
        let told = |argument: &[u8]| {
            let words = [b"cronward".to_vec(), b"lock".to_vec(), argument.to_vec(), b"\xff".to_vec()];
            not_text(words.into_iter().map(std::ffi::OsString::from_vec))
        };
        assert_eq!(told(b"a\xffb").as_deref(), Some("argument 2, a\u{fffd}b, is not UTF-8"));
        assert_eq!(told(b"redis://u:secret@h\xff").as_deref(), Some("argument 2 is not UTF-8"));
        assert_eq!(told(b"x").as_deref(), Some("argument 3, \u{fffd}, is not UTF-8"));
    }

    #[test]
    fn that_no_thread_can_be_started_is_told_with_the_way_out_and_other_panics_as_they_are() {
        let told = missing_thread("OS can't spawn worker thread: Resource temporarily unavailable (os error 11)");
        assert_eq!(
            told.map(|failure| failure.to_string()).unwrap(),
            "cannot start a thread: Resource temporarily unavailable (os error 11); allow this user more processes \
             (`ulimit -u`; `TasksMax=` of a service), then try again"
        );
        assert!(missing_thread("index out of bounds").is_none());
    }

    #[test]
    fn every_command_begins_its_help_with_an_example_of_itself() {
        for mut verb in command().get_subcommands().cloned() {
            let name = verb.get_name().to_owned();
            let help = verb.render_long_help().to_string();
            assert!(help.starts_with(&format!("Example: cronward {name}")), "{name}: {help}");
        }
    }

    #[test]
    fn every_example_is_a_command_line_that_can_be_used() {
        for verb in command().get_subcommands() {
            let example = verb.get_before_help().map(ToString::to_string).unwrap_or_default();
            // What stands between quotes is one word.
            let parts = example.trim_start_matches("Example: ").split('\'').enumerate();
            let words = parts.flat_map(|(index, part)| match index % 2 {
                0 => part.split_whitespace().collect(),
                _ => vec![part],
            });
            assert!(command().try_get_matches_from(words).is_ok(), "{example}");
        }
    }

    fn told(words: &[&str]) -> String {
        let error = command().try_get_matches_from(words).unwrap_err();
        let commands = command();
        one_line(&error, words.get(1).and_then(|verb| commands.find_subcommand(verb)))
    }

    #[test]
    fn a_wrong_command_line_is_one_line_with_the_way_out() {
        for (words, line) in [
            (
                &["cronward", "attempts", "--sicne", "3d"][..],
                "error: unexpected argument '--sicne' found; a similar argument exists: '--since'; see `cronward attempts --help`",
            ),
            (
                &["cronward", "logs"],
                "error: the following required arguments were not provided: <JOB[@SLOT]>; write it as in `cronward logs billing@-1 --attempt 2`; see `cronward logs --help`",
            ),
            (
                &["cronward", "jobs", "--interval", "5s"],
                "error: the following required arguments were not provided: --watch; add it; see `cronward jobs --help`",
            ),
            (
                &["cronward", "nodes", "--xyzzy"],
                "error: unexpected argument '--xyzzy' found; leave it out; see `cronward nodes --help`",
            ),
            (
                &["cronward", "--store", "sqlite:x.db", "jobs"],
                "error: --store goes after the command: cronward jobs --store …; see `cronward jobs --help`",
            ),
            (
                &["cronward", "next", "--count", "many"],
                "error: invalid value 'many' for '--count <N>': write a whole number from 1 to 1000; see `cronward next --help`",
            ),
            (
                &["cronward", "xyzzy"],
                "error: unrecognized subcommand 'xyzzy'; try one that `cronward --help` lists; see `cronward --help`",
            ),
            (
                &["cronward", "nodes", "--store"],
                "error: a value is required for '--store <URL>' but none was supplied; give one; see `cronward nodes --help`",
            ),
        ] {
            assert_eq!(told(words), line);
        }
    }

    #[test]
    fn a_word_however_long_is_not_repeated_as_a_whole_and_what_to_write_is_told_behind_it() {
        let long = "9".repeat(100_000);
        let line = told(&["cronward", "next", "--count", &long]);
        assert!(line.chars().count() < 1_000, "{} letters", line.chars().count());
        assert!(line.starts_with("error: invalid value '999"), "{line}");
        assert!(line.ends_with("' for '--count <N>': write a whole number from 1 to 1000; see `cronward next --help`"));
    }
}
