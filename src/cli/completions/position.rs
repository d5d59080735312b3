//! What stands at the end of an unfinished command line. Pure: knows the command line's grammar, and no file.

use std::path::PathBuf;

use clap::{Arg, Command};

/// Whether the last of the words, which may be unfinished or empty, is to be a job. The first word is the program.
pub(super) fn wants_job(root: &Command, words: &[String]) -> bool {
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
pub(super) fn config_of(words: &[String]) -> Option<PathBuf> {
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
