//! What every command says: its help, what it typically writes, and its errors, against what was approved.
//!
//! A case is a file in `tests/snapshots/cases`: command lines, one below the other, run in a folder with the files of
//! `tests/snapshots/files` and a filled store; `| head -9` looks at the beginning alone. What came of it is `tests/snapshots/<case>.snap`. A case that names `{store}`
//! is run on SQLite and again on a real Redis, and both have to say the same. To add a command: add its case, run this test
//! with `INSTA_UPDATE=always`, read the new file.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::filled::Filled;
use crate::process::signal;
use crate::program::Ended;
use crate::redacted::redacted;
use crate::redis_server::RedisServer;

/// A line of a case that lets a node tell that it is alive.
const HEARD_OF: &str = "node: ";

/// What doctor measures: as it happens to be.
const MEASURED: &[&str] = &["latency", "clock", "notifications", "version", "disk"];

/// Commands that say something else once a file is named.
const WITHOUT_A_FILE: &[&str] = &["next", "doctor"];

/// Commands whose typical output is looked at elsewhere, and why.
const OUTPUT_ELSEWHERE: &[(&str, &str)] = &[
    ("demo", "three processes decide in which order they speak: tests/cli/demo.rs looks at what is said"),
    ("token", "each token is another: tests/cli/port.rs looks at what is said"),
];

/// Commands whose typical output is a log, on stderr.
const LOGS: &[&str] = &["run"];

/// Begins a line of a case whose command goes on until it is told to stop: that is once it has reached its store.
const UNTIL_TERM: &str = "TERM=15 ";

/// An error says what to do about it with one of these; whose help to read is not enough.
const WAYS_OUT: &[&str] = &[
    "1 to ",
    " lists the jobs",
    "; a similar ",
    "; add it",
    "goes after the command",
    "use its start",
    "are: ",
    "[possible values: ",
    "add --",
    "check that ",
    "did you mean ",
    "give ",
    "is not in ",
    "known are ",
    "leave ",
    "lies in ",
    "lists those there are",
    "must be ",
    "name ",
    "says which",
    "there is ",
    "try ",
    "wait for it",
    "write ",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots")
}

/// The files of a folder by name, without what comes after the dot.
fn files(folder: &Path) -> Vec<(String, PathBuf)> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths.map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path)).collect();
    files.sort();
    files
}

/// One line of a case.
struct Line {
    shown: String,
    variables: Vec<(String, String)>,
    args: Vec<String>,
    /// Of a long output only so many lines are looked at.
    head: usize,
}

impl Line {
    fn read(text: &str, store: &Filled) -> Self {
        let shown = text.to_owned();
        let (text, head) = match text.split_once(" | head -") {
            Some((text, head)) => (text, head.parse().unwrap()),
            None => (text, usize::MAX),
        };
        let filled = text.replace("{store}", &store.file()).replace("{key}", &store.key);
        // What stands between quotes is one word.
        let parts = filled.split('\'').enumerate();
        let words = parts.flat_map(|(index, part)| match index % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        });
        let words: Vec<String> = words.collect();
        let program =
            words.iter().position(|word| word == "cronward").unwrap_or_else(|| panic!("no cronward in {text}"));
        let variables = words[..program].iter().map(|word| word.split_once('=').unwrap());
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let mut args = words[program + 1..].to_vec();
        let alone = !text.contains("--config") && !args.iter().any(|arg| WITHOUT_A_FILE.contains(&arg.as_str()));
        if text.contains("{store}") && alone {
            // How long a busy machine makes a store wait is not what is looked at.
            args.splice(1..1, ["--config".to_owned(), "patient.toml".to_owned()]);
        }
        Self { shown, variables, args, head }
    }

    /// What an error may be about: a word of the command line, the file that is looked for, what is missing.
    fn things(&self) -> Vec<&str> {
        let known = cronward::cli::command().find_subcommand(self.args.first().map_or("", String::as_str)).is_some();
        let words = self.args.iter().skip(usize::from(known)).chain(self.variables.iter().map(|(_, value)| value));
        let words = words.flat_map(|word| word.split(['=', '@'])).filter(|word| word.len() > 2);
        words.chain(["jobs.toml", "not provided: "]).collect()
    }

    fn run(&self, store: &Filled) -> Ended {
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        let mut command = store.place().command(&args);
        command.env("COLUMNS", "100").env("STORE", store.file()).envs(self.variables.clone());
        if self.shown.starts_with(UNTIL_TERM) {
            return until_term(command);
        }
        command.output().unwrap().into()
    }

    /// What came of it, comparable.
    fn told(&self, ended: &Ended, store: &Filled) -> String {
        let is_help = self.args.iter().any(|arg| arg == "--help") || self.args.is_empty();
        let mut told = format!("$ {}\n", self.shown);
        for (text, mark) in [(&ended.stdout, ""), (&ended.stderr, "! ")] {
            for line in text.lines().take(self.head) {
                let _ = writeln!(told, "{mark}{line}");
            }
        }
        if ended.code != 0 {
            let _ = writeln!(told, "exit {}", ended.code);
        }
        let told =
            told.replace(&store.file(), "[STORE]").replace(&store.place().path().display().to_string(), "[FOLDER]");
        let told = told.replace(&cronward::zone::Database::current().to_string(), "[ZONES]");
        let told = told.replace(&format!("cronward {}\n", env!("CARGO_PKG_VERSION")), "cronward [VERSION]\n");
        let told = told.replace(&format!("cronward {}\"", env!("CARGO_PKG_VERSION")), "cronward [VERSION]\"");
        let told = told.replace(&format!("version=\"{}\"", env!("CARGO_PKG_VERSION")), "version=\"[VERSION]\"");
        if is_help { told } else { without_measures(&without_places(&redacted(&told))) }
    }
}

/// Runs a daemon until it has reached its store, and then stops it.
fn until_term(mut command: Command) -> Ended {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = String::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap) {
        if line.contains("store reached") {
            signal(child.id(), Signal::TERM);
        }
        stderr += &format!("{line}\n");
    }
    Ended { code: child.wait().unwrap().code().unwrap(), stdout: String::new(), stderr }
}

/// Where a store keeps a slot is its own affair.
fn without_places(text: &str) -> String {
    let Some((before, _)) = text.split_once("\nkept at\n") else { return text.to_owned() };
    format!("{before}\nkept at\n  [PLACES]\n")
}

/// What doctor measured is left out, in its table and in its JSON.
fn without_measures(text: &str) -> String {
    let (mut out, mut check) = (String::new(), String::new());
    for line in text.lines() {
        if let Some((_, word)) = line.split_once("\"check\": \"") {
            check = word.trim_end_matches("\",").to_owned();
        }
        let in_json = line.trim_start().starts_with("\"found\": \"") && MEASURED.contains(&check.as_str());
        let found = MEASURED.iter().find_map(|word| {
            let (_, found) = line.split_once(&format!("  {word}  "))?;
            Some(found.trim_start())
        });
        let shown = match found {
            _ if in_json => "      \"found\": \"[MEASURED]\",".to_owned(),
            Some(found) => format!("{}[MEASURED]", line.strip_suffix(found).unwrap()),
            None => line.to_owned(),
        };
        let _ = writeln!(out, "{shown}");
    }
    out
}

/// Runs a case on a store; answers what it said, and which errors break a rule.
fn play(case: &str, store: &Filled) -> (String, Vec<String>) {
    for (_, path) in files(&folder().join("files")) {
        std::fs::copy(&path, store.place().path().join(path.file_name().unwrap())).unwrap();
    }
    let (mut told, mut wrong) = (Vec::new(), Vec::new());
    for text in case.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(node) = text.strip_prefix(HEARD_OF) {
            store.hear_of(node);
            continue;
        }
        let line = Line::read(text, store);
        let ended = line.run(store);
        told.push(line.told(&ended, store));
        wrong.extend(judged(&line, &ended).map(|why| format!("{text}: {why}: {}", ended.stderr)));
    }
    (told.join("\n"), wrong)
}

/// An error is one line that names the thing and says what to do. Before it may come warnings, and the findings in a file.
fn judged(line: &Line, ended: &Ended) -> Option<&'static str> {
    let own = |code| (64..=78).contains(&code);
    let last = ended.stderr.lines().last().filter(|_| own(ended.code))?;
    let is_error = |line: &str| line.starts_with("error: ") || line.starts_with("cronward: ");
    if ended.stderr.starts_with("Example: ") {
        return None;
    }
    if !is_error(last) {
        return Some("the last line is no error");
    }
    let findings = last.ends_with("nothing was done");
    let others = ended.stderr.lines().filter(|line| !line.starts_with("warning: ")).count();
    if others > 1 && !findings {
        return Some("it has more than one line");
    }
    let told = last.rsplit_once("; see `cronward").map_or(last, |(told, _)| told);
    if !line.things().iter().any(|thing| told.contains(thing)) {
        return Some("it does not name the thing");
    }
    (!findings && !WAYS_OUT.iter().any(|way| told.contains(way))).then_some("it names no way out")
}

#[test]
fn every_command_says_what_was_approved_and_the_same_on_every_store() {
    let server = RedisServer::start();
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(folder());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let mut wrong = Vec::new();
    for (name, path) in files(&folder().join("cases")) {
        let case = std::fs::read_to_string(&path).unwrap();
        let (told, broken) = play(&case, &Filled::new());
        wrong.extend(broken);
        if case.contains("{store}") {
            server.command(&["FLUSHALL"]);
            let (elsewhere, _) = play(&case, &Filled::at(Some(server.url())));
            if elsewhere != told {
                wrong.push(format!("{name}: on Redis it says:\n{elsewhere}\nand on SQLite:\n{told}"));
            }
        }
        let compared =
            catch_unwind(AssertUnwindSafe(|| settings.bind(|| insta::assert_snapshot!(name.as_str(), told))));
        if compared.is_err() {
            wrong.push(format!("{name}: not what was approved"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What each command line of an approved case came to: the line, and what was told.
fn blocks(approved: &str) -> Vec<(&str, Vec<&str>)> {
    let blocks = approved.split("\n$ ").skip(1);
    blocks
        .map(|block| block.split_once('\n').unwrap_or((block, "")))
        .map(|(line, told)| (line, told.lines().collect()))
        .collect()
}

#[test]
fn every_command_has_a_case_with_its_help_an_output_and_an_error() {
    let cases = files(&folder().join("cases"));
    for verb in cronward::cli::command().get_subcommands() {
        let name = verb.get_name();
        assert!(cases.iter().any(|(case, _)| case == name), "tests/snapshots/cases has no {name}.txt");
        let approved = std::fs::read_to_string(folder().join(format!("{name}.snap"))).unwrap();
        let blocks = blocks(&approved);
        let is_own = |line: &str| line.split(' ').skip_while(|word| *word != "cronward").nth(1) == Some(name);
        let own: Vec<_> = blocks.iter().filter(|(line, _)| is_own(line)).collect();
        let failed = |told: &[&str]| told.iter().any(|line| line.starts_with("exit 6") || line.starts_with("exit 7"));
        let is_output = |line: &&str| !line.is_empty() && (LOGS.contains(&name) || !line.starts_with("! "));
        let spoke = |told: &[&str]| told.iter().any(is_output);
        assert!(own.iter().any(|(line, _)| line.ends_with("--help")), "{name}: no help");
        assert!(own.iter().any(|(_, told)| failed(told)), "{name}: no error");
        let has_output = own.iter().any(|(line, told)| !line.ends_with("--help") && !failed(told) && spoke(told));
        let elsewhere = OUTPUT_ELSEWHERE.iter().any(|(verb, _)| *verb == name);
        assert!(has_output != elsewhere, "{name}: no output, or an exception that is none");
    }
}

#[test]
fn an_error_of_two_lines_or_without_the_thing_or_a_way_out_is_found() {
    let ended = |code, stderr: &str| Ended { code, stdout: String::new(), stderr: stderr.to_owned() };
    let args = ["show", "xyz@14"].map(str::to_owned).to_vec();
    let line = Line { shown: String::new(), variables: Vec::new(), args, head: usize::MAX };
    let judged = |code, stderr: &str| judged(&line, &ended(code, stderr));
    assert_eq!(judged(64, "error: no job xyz: did you mean y?\n"), None);
    assert_eq!(judged(64, "error: no xyz\n"), Some("it names no way out"));
    assert_eq!(judged(64, "error: no xyz; see `cronward show --help`\n"), Some("it names no way out"));
    assert_eq!(judged(64, "error: no such show: try again\n"), Some("it does not name the thing"));
    assert_eq!(judged(64, "error: no\nerror: try again\n"), Some("it has more than one line"));
    assert_eq!(judged(64, "error: try again\nsome more\n"), Some("the last line is no error"));
    assert_eq!(judged(3, "whatever a command says\n"), None);
}
