//! What is said to a command line that cannot be used: one line, with the thing and the way out.

use clap::Command;
use clap::error::ErrorKind;

use crate::cli::console::Console;
use crate::cli::exit_code::ExitCode;

/// Shows what clap has to say: help and version on stdout with 0, a wrong command line on stderr with 64.
pub(super) fn explain(told: &clap::Error, commands: &Command, console: &mut Console) -> ExitCode {
    if told.use_stderr() && told.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let verb = std::env::args().nth(1).and_then(|verb| commands.find_subcommand(verb));
        console.note(one_line(told, verb));
        return ExitCode::Usage;
    }
    // A reader that went away (`cronward --help | head -1`) is no failure.
    let _ = told.print();
    if told.use_stderr() { ExitCode::Usage } else { ExitCode::Success }
}

/// clap's paragraphs as one line, like every other error: what is wrong, what may be meant, and whose help to read.
fn one_line(told: &clap::Error, verb: Option<&Command>) -> String {
    let text = told.to_string();
    let mut parts: Vec<String> = Vec::new();
    let kept =
        |line: &&str| !line.is_empty() && !line.starts_with("Usage: ") && !line.starts_with("For more information");
    for line in text.lines().map(str::trim).filter(kept) {
        let line = line.strip_prefix("tip: ").unwrap_or(line);
        match parts.last_mut().filter(|last| last.ends_with(':')) {
            Some(last) => *last = format!("{last} {line}"),
            None => parts.push(line.to_owned()),
        }
    }
    parts.extend(way_out(told.kind(), &parts.join("; "), verb));
    let verb = verb.map(|verb| format!(" {}", verb.get_name())).unwrap_or_default();
    format!("{}; see `cronward{verb} --help`", parts.join("; "))
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
}
