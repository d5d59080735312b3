//! The scripts: what clap generates, and behind it the few lines that ask for names of jobs.

use clap::Command;
use clap_complete::Shell;

use crate::cli::completions::position::{config_of, wants_job};
use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::clock::{Clock, SystemClock};
use crate::config::{self, Environment};

const BASH: &str = include_str!("jobs.bash");
const ZSH: &str = include_str!("jobs.zsh");
const FISH: &str = include_str!("jobs.fish");

/// A script that completes commands, flags and job names; jobs are those of the file that --config names or that is found
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Example: cronward completions bash",
    after_help = "bash: cronward completions bash > /etc/bash_completion.d/cronward\n\
                  zsh:  cronward completions zsh > /usr/local/share/zsh/site-functions/_cronward\n\
                  fish: cronward completions fish > /etc/fish/completions/cronward.fish"
)]
pub(crate) struct Args {
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
pub(crate) fn completions(args: &Args, commands: Command, console: &mut Console) -> Result<(), Failure> {
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
}
