//! Completion in real shells, and the manual pages as `man` reads them.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::Place;

const JOBS: &str = "\
[jobs.hourly-push]\nschedule = \"0 * * * *\"\ncommand = \"true\"\n\
[jobs.nightly-report]\nschedule = \"30 2 * * *\"\ncommand = \"true\"\n";

/// A place with jobs, a script for this shell, and the program in PATH.
struct Shell {
    place: Place,
}

impl Shell {
    fn with(shell: &str) -> Self {
        let place = Place::with_jobs(JOBS);
        let script = place.run(&["completions", shell]);
        assert_eq!((script.code, &*script.stderr), (0, ""), "{shell}");
        std::fs::write(place.path().join("_cronward"), script.stdout).unwrap();
        Self { place }
    }

    fn command(&self, program: &str, args: &[&str]) -> Command {
        let bin = Path::new(env!("CARGO_BIN_EXE_cronward")).parent().unwrap();
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(self.place.path())
            .env_clear()
            .env("HOME", self.place.path())
            .env("TERM", "xterm");
        command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
        command
    }

    /// Types into an interactive shell at a terminal; answers what the terminal shows.
    fn types(&self, program: &str, typed: &str) -> String {
        let mut command = self.command("script", &["-q", "-E", "never", "-c", program, "/dev/null"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("script of util-linux");
        child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
        String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned()
    }
}

#[test]
fn bash_completes_a_job_a_command_and_a_flag_at_a_tab() {
    let shell = Shell::with("bash");
    let typed = "bind 'set bell-style none'; . ./_cronward\n\
                 cronward show ho\t | head -0\ncronward attempts --job=ni\t | head -0\n\
                 cronward atte\t --since 1h | head -0\ncronward attempts --sin\t 1h | head -0\nhistory\nexit\n";
    // What is typed ahead is not shown; what was run is in the history.
    let shown = shell.types("bash --norc --noprofile -i", typed);
    for line in [
        "cronward show hourly-push  | head",
        "cronward attempts --job=nightly-report  | head",
        "cronward attempts  --since 1h",
        "cronward attempts --since  1h",
    ] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
}

#[test]
fn zsh_completes_a_job_and_a_command_at_a_tab() {
    let shell = Shell::with("zsh");
    let typed = "fpath=($PWD $fpath); autoload -U compinit; compinit -u -D; setopt no_beep\n\
                 cronward show ho\t | head -0\ncronward attempts --job ni\t | head -0\ncronward migr\t --help | head -0\n\
                 exit\n";
    let shown = shell.types("zsh -f -i", typed);
    // The terminal shows what was typed and what the shell put behind it, with codes between them.
    let plain: String = without_codes(&shown);
    for line in ["hourly-push", "nightly-report", "migrate"] {
        assert!(plain.contains(line), "{line} in {plain}");
    }
}

#[test]
fn fish_completes_a_job_a_command_and_a_flag() {
    let shell = Shell::with("fish");
    let asked = |line: &str| {
        let script = format!("source _cronward; complete -C '{line}'");
        let output = shell.command("fish", &["--no-config", "-c", &script]).output().expect("fish");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(asked("cronward show ho"), "hourly-push\n");
    assert_eq!(asked("cronward attempts --job ni"), "nightly-report\n");
    assert!(asked("cronward migr").starts_with("migrate"), "{}", asked("cronward migr"));
    assert!(asked("cronward attempts --sin").starts_with("--since"));
}

/// A terminal's text without what moves cursors and colours letters.
fn without_codes(shown: &str) -> String {
    let mut plain = String::new();
    let mut chars = shown.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            plain.push(c);
        } else if chars.next() == Some('[') {
            let _ = chars.find(char::is_ascii_alphabetic);
        }
    }
    plain
}

#[test]
fn names_are_those_of_the_file_that_the_line_names_and_an_error_is_no_name() {
    let place = Place::with_jobs(JOBS);
    std::fs::write(place.path().join("other.toml"), JOBS.replace("hourly-push", "elsewhere")).unwrap();
    std::fs::write(place.path().join("broken.toml"), "[jobs.a]\n").unwrap();
    let names = |words: &[&str]| {
        let told = place.run(&[&["completions", "--names", "--", "cronward"], words].concat());
        assert_eq!((told.code, &*told.stderr), (0, ""), "{words:?}");
        told.stdout
    };
    assert_eq!(names(&["show", ""]), "hourly-push\nnightly-report\n");
    assert_eq!(names(&["show", "--config", "other.toml", ""]), "elsewhere\nnightly-report\n");
    assert_eq!(names(&["check", ""]), "");
    assert_eq!(names(&["show", "--config", "broken.toml", ""]), "");
    assert_eq!(names(&["show", "--config", "nowhere.toml", ""]), "");
}

#[test]
fn there_is_a_manual_page_for_each_command_and_man_can_read_them() {
    let place = Place::new();
    let told = place.run(&["man", "--out", "pages"]);
    assert_eq!((told.code, &*told.stdout), (0, ""), "{}", told.stderr);
    let help = place.run(&["--help"]).stdout;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // What is wrapped begins further to the right.
    let verbs: Vec<&str> = listed
        .filter_map(|line| {
            line.strip_prefix("  ")
                .filter(|rest| !rest.starts_with(' '))
                .and_then(|rest| rest.split_whitespace().next())
        })
        .collect();
    assert!(verbs.len() > 15 && verbs.contains(&"import"), "{verbs:?}");
    for verb in verbs.iter().chain([&"import-crontab"]) {
        let page = std::fs::read_to_string(place.path().join(format!("pages/cronward-{verb}.1"))).expect(verb);
        assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{verb}");
    }
    let whole = place.run(&["man"]);
    assert_eq!(whole.stdout, std::fs::read_to_string(place.path().join("pages/cronward.1")).unwrap());
    assert!(whole.stdout.starts_with(".ie \\n(.g") && whole.stdout.contains("cronward\\-run(1)"), "{}", whole.stdout);
}

#[test]
fn a_shell_that_is_not_supported_is_a_usage_error() {
    let place = Place::new();
    for args in [&["completions"][..], &["completions", "powershell"]] {
        let told = place.run(args);
        assert_eq!((told.code, &*told.stdout), (64, ""), "{args:?}");
        assert!(told.stderr.contains("SHELL") || told.stderr.contains("bash"), "{}", told.stderr);
    }
    assert_eq!(place.run(&["man", "--out", "/proc/nowhere"]).code, 64);
}
