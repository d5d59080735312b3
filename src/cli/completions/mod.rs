//! `cronward completions SHELL`: scripts for bash, zsh and fish. Words of the command line are clap's; names of jobs are
//! asked for anew at each tab: the script calls `cronward completions --names -- WORDS…`, which reads the file of jobs and
//! meets no store.
//!
//! What stands at the end of an unfinished command line is read off clap's own grammar of it.

use std::path::PathBuf;

use clap::{Arg, Command};
use clap_complete::Shell;

use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::clock::{Clock, SystemClock};
use crate::config::{self, Environment};

const BASH: &str = include_str!("jobs.bash");
const ZSH: &str = include_str!("jobs.zsh");
const FISH: &str = include_str!("jobs.fish");

/// Print a shell script that completes commands, flags and job names (from the file of jobs)
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Example: cronward completions bash",
    after_help = "bash: cronward completions bash > /etc/bash_completion.d/cronward\n\
                  zsh:  cronward completions zsh > /usr/local/share/zsh/site-functions/_cronward\n\
                  fish: cronward completions fish > /etc/fish/completions/cronward.fish"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum, required_unless_present = "names")]
    pub(crate) shell: Option<Supported>,
    /// For the scripts: the jobs that may stand at the end of these words, one a line
    #[arg(long, hide = true, conflicts_with = "shell")]
    pub(crate) names: bool,
    /// The words
    #[arg(last = true, hide = true, requires = "names", value_name = "WORD", allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

/// Shells that are tried by tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Supported {
    /// For bash 4.4 or newer
    Bash,
    /// For zsh
    Zsh,
    /// For fish
    Fish,
}

/// Writes the script, or for a script the names.
pub(crate) fn completions(args: &CompletionsArgs, commands: Command, console: &mut Console) -> Result<(), Failure> {
    match args.shell {
        Some(shell) => console.print(&script(shell, commands)),
        None => console.print(&names(&commands, &args.words)),
    }
}

/// Every job of the file where a job is wanted. At a tab nobody reads messages: what is wrong is no name.
fn names(commands: &Command, words: &[String]) -> String {
    if !wants_job(commands, words) {
        return String::new();
    }
    let Ok(path) = config::find(config_of(words).as_deref()) else { return String::new() };
    let environment = Environment::of_process(SystemClock.now().wall);
    let jobs = config::load(&path, &environment).map(|(config, _)| config.jobs).unwrap_or_default();
    jobs.keys().map(|name| format!("{name}\n")).collect()
}

fn script(shell: Supported, commands: Command) -> String {
    match shell {
        Supported::Bash => generated(Shell::Bash, commands) + "\n" + BASH,
        Supported::Fish => generated(Shell::Fish, commands) + "\n" + FISH,
        Supported::Zsh => {
            // clap's function gets another name, and its last lines, which make it known, give way to ours.
            let script = generated(Shell::Zsh, commands);
            let end = script.find("if [ \"$funcstack[1]\"").unwrap_or(script.len());
            let kept = script.get(..end).unwrap_or(&script);
            kept.replace("\n_cronward() {\n", "\n_cronward_words() {\n") + ZSH
        }
    }
}

fn generated(shell: Shell, mut commands: Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut commands, "cronward", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Whether the last of the words, which may be unfinished or empty, is to be a job. The first word is the program.
fn wants_job(root: &Command, words: &[String]) -> bool {
    let Some((current, before)) = words.split_last() else { return false };
    let mut at = Position { command: root, positional: 0, value_of: None };
    for word in before.iter().skip(1) {
        if word == "--" {
            return false;
        }
        at.pass(word);
    }
    if let Some((flag, _)) = current.split_once('=') {
        return at.flag(flag).is_some_and(takes_job);
    }
    if at.value_of.is_none() && current.starts_with('-') {
        return false;
    }
    let positional = || at.command.get_positionals().nth(at.positional);
    at.value_of.or_else(positional).is_some_and(takes_job)
}

/// The file that the words name with `--config`.
fn config_of(words: &[String]) -> Option<PathBuf> {
    let inline = words.iter().find_map(|word| word.strip_prefix("--config="));
    let at = words.iter().position(|word| word == "--config");
    // bash makes `--config=x` three words.
    let mut following = at.map(|at| words.iter().skip(at + 1)).into_iter().flatten().filter(|word| *word != "=");
    inline.or_else(|| following.next().map(String::as_str)).map(PathBuf::from)
}

struct Position<'a> {
    command: &'a Command,
    /// How many words without a flag have passed.
    positional: usize,
    /// The flag whose value comes next.
    value_of: Option<&'a Arg>,
}

impl<'a> Position<'a> {
    fn pass(&mut self, word: &str) {
        // bash makes three words of `--job=a`.
        if word == "=" {
            return;
        }
        if self.value_of.take().is_some() {
            return;
        }
        if word.starts_with('-') && word.len() > 1 {
            self.value_of = self.flag(word).filter(|arg| arg.get_action().takes_values());
        } else if let Some(command) = self.command.find_subcommand(word) {
            *self = Self { command, positional: 0, value_of: None };
        } else {
            self.positional += 1;
        }
    }

    fn flag(&self, word: &str) -> Option<&'a Arg> {
        let long = word.strip_prefix("--");
        let short = word.strip_prefix('-').and_then(|rest| rest.chars().next());
        self.command.get_arguments().find(|arg| match long {
            Some(long) => arg.get_long() == Some(long),
            None => arg.get_short() == short && short.is_some(),
        })
    }
}

fn takes_job(arg: &Arg) -> bool {
    arg.get_value_names()
        .is_some_and(|names| names.iter().any(|name| ["JOB", "JOB[@SLOT]", "JOB|NODE"].contains(&name.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::cli::command;

    #[test]
    fn what_clap_generates_still_has_the_lines_that_are_replaced() {
        let zsh = script(Supported::Zsh, command());
        assert_eq!(zsh.matches("\n_cronward_words() {\n").count(), 1);
        assert_eq!(zsh.matches("funcstack").count(), 1, "only ours is left");
        assert!(script(Supported::Bash, command()).trim_end().ends_with("cronward"));
    }

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_job_is_wanted_where_the_grammar_has_one() {
        for line in [
            "cronward show ",
            "cronward show bil",
            "cronward next --count 3 ",
            "cronward attempts --job ",
            "cronward attempts --job=b",
            "cronward attempts --job = b",
            "cronward exec --store redis://h/ --job b",
            "cronward reset --config a.toml ",
        ] {
            assert!(wants_job(&command(), &words(line)), "{line}");
        }
    }

    #[test]
    fn nowhere_else() {
        for line in [
            "cronward ",
            "cronward sh",
            "cronward show --",
            "cronward show -",
            "cronward show billing ",
            "cronward show --config ",
            "cronward next --count ",
            "cronward check ",
            "cronward exec --job a -- ",
            "cronward verify ",
            "cronward nonsense ",
        ] {
            assert!(!wants_job(&command(), &words(line)), "{line}");
        }
        assert!(!wants_job(&command(), &[]));
    }

    #[test]
    fn the_file_is_the_one_that_the_line_names() {
        let config = |line: &str| config_of(&words(line)).map(|path| path.display().to_string());
        assert_eq!(config("cronward show --config a.toml b").as_deref(), Some("a.toml"));
        assert_eq!(config("cronward show --config=a.toml b").as_deref(), Some("a.toml"));
        assert_eq!(config("cronward show --config = a.toml b").as_deref(), Some("a.toml"));
        assert_eq!(config("cronward show b"), None);
        assert_eq!(config("cronward show --config"), None);
    }
}
