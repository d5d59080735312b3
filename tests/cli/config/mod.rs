//! `jobs.toml`: what is read from it, what is told of it, and the command that tells it.

mod check;
mod defaults;
mod hash;
mod host;
mod hostile;
mod jobs;
mod lints;
mod locks;
mod notify;
mod rendering;
mod sections;

use cronward::config::{Config, Diagnostics, Environment, lint, parse};

/// Noon of a Saturday, on a host without variables.
fn env() -> Environment {
    Environment::new("2026-11-21T12:00:00Z".parse().unwrap()).with_hostname("web-1")
}

/// A file that can be used.
fn config(text: &str) -> Config {
    config_with(text, &env())
}

fn config_with(text: &str, env: &Environment) -> Config {
    parse("jobs.toml", text.to_owned(), env).map_or_else(|report| panic!("{report}"), |(config, _)| config)
}

/// A job besides the one key that a test is about.
fn job(lines: &str) -> String {
    format!("[jobs.a]\nschedule = \"0 * * * *\"\ncommand = [\"true\"]\n{lines}\n")
}

/// What is told of a text, whether it can be used or not.
fn report(text: &str) -> Diagnostics {
    match lint("jobs.toml", text.to_owned(), &env()) {
        Ok((_, report)) => report,
        Err(report) => report,
    }
}

/// Each finding as `line:column code: message (hint)`.
fn told(text: &str) -> Vec<String> {
    let report = report(text);
    let line = |finding: &cronward::config::Diagnostic| {
        let (line, column) = report.position(finding.span.start);
        let hint = finding.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{line}:{column} {}: {}{hint}", finding.code, finding.message)
    };
    report.findings.iter().map(line).collect()
}

/// Checks that a text has exactly one finding, which begins like this.
#[track_caller]
fn tells(text: &str, expected: &str) {
    let told = told(text);
    assert_eq!(told.len(), 1, "{text}\n{told:#?}");
    assert!(told[0].starts_with(expected), "{text}\n{}", told[0]);
}
