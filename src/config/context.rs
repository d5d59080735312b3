//! What every part of the check shares: the text; what it may know of the world around (variables, the host's name, the date, files
//! that hold secrets, read within bounds); and the list of findings, kept within bounds.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;
use std::path::Path;

use chrono::{DateTime, Utc};

use crate::config::diagnostic::{floor_boundary, position};
use crate::config::{Diagnostic, Severity};
use crate::file;
use crate::text::message;

/// Findings of one severity that are kept; nobody reads more, and a hostile file could make millions.
const MOST: usize = 100;

/// Characters of a message and of a hint that are kept: a name in it may be as long as the file.
const LONGEST: usize = 600;

/// How the codes of keys begin that have to be there and are not.
const MISSING: &str = "missing-";

/// What every part of the check shares.
pub(super) struct Context<'a> {
    pub(super) text: &'a str,
    pub(super) env: &'a Environment,
    findings: RefCell<Vec<Diagnostic>>,
    secrets: RefCell<Vec<Range<usize>>>,
    /// Where the lines begin that are no TOML; nothing more is said of them.
    broken: RefCell<BTreeSet<usize>>,
    errors: Cell<usize>,
    others: Cell<usize>,
}

impl<'a> Context<'a> {
    pub(super) fn new(text: &'a str, env: &'a Environment) -> Self {
        Self {
            text,
            env,
            findings: RefCell::default(),
            secrets: RefCell::default(),
            broken: RefCell::default(),
            errors: Cell::new(0),
            others: Cell::new(0),
        }
    }

    /// Adds a finding, unless there is one of the same kind at the same place (a value in `[defaults]` is met once per
    /// job) or there are too many.
    pub(super) fn add(&self, mut finding: Diagnostic) {
        finding.span = self.fit(&finding.span);
        if self.is_aftermath(&finding) {
            return;
        }
        let mut findings = self.findings.borrow_mut();
        if findings.iter().any(|known| known.code == finding.code && known.span == finding.span) {
            return;
        }
        let counter = if finding.severity == Severity::Error { &self.errors } else { &self.others };
        counter.set(counter.get() + 1);
        if counter.get() <= MOST {
            finding.message = message(&finding.message, LONGEST);
            finding.hint = finding.hint.map(|hint| message(&hint, LONGEST));
            findings.push(finding);
        }
    }

    /// Says that all syntax errors are there. What they made incomplete is not judged further: on their lines nothing
    /// more is told, and elsewhere neither what seems to be missing nor lints.
    pub(super) fn end_of_syntax(&self) {
        let lines = self.findings.borrow().iter().map(|finding| self.line_start(finding.span.start)).collect();
        *self.broken.borrow_mut() = lines;
    }

    fn is_aftermath(&self, finding: &Diagnostic) -> bool {
        let broken = self.broken.borrow();
        let incomplete = finding.severity != Severity::Error || finding.code.starts_with(MISSING);
        !broken.is_empty() && (incomplete || broken.contains(&self.line_start(finding.span.start)))
    }

    fn line_start(&self, offset: usize) -> usize {
        self.text.get(..offset).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1)
    }

    /// Adds an error.
    pub(super) fn error(&self, code: &'static str, span: Range<usize>, message: String, hint: impl Into<Hint>) {
        self.add(Diagnostic { severity: Severity::Error, code, message, span, hint: hint.into().0 });
    }

    /// Adds a warning.
    pub(super) fn warn(&self, code: &'static str, span: Range<usize>, message: String, hint: impl Into<Hint>) {
        self.add(Diagnostic { severity: Severity::Warning, code, message, span, hint: hint.into().0 });
    }

    /// Adds a note.
    pub(super) fn note(&self, code: &'static str, span: Range<usize>, message: String, hint: impl Into<Hint>) {
        self.add(Diagnostic { severity: Severity::Note, code, message, span, hint: hint.into().0 });
    }

    /// Errors so far, also those that are not kept.
    pub(super) fn errors(&self) -> usize {
        self.errors.get()
    }

    /// Whether further errors would not be kept anyway.
    pub(super) fn is_full(&self) -> bool {
        self.errors.get() > MOST
    }

    /// Marks a place of the text that is never shown.
    pub(super) fn hide(&self, span: Range<usize>) {
        self.secrets.borrow_mut().push(span);
    }

    /// The places never to be shown.
    pub(super) fn hidden(&self) -> Vec<Range<usize>> {
        self.secrets.borrow().clone()
    }

    /// The place within a string value that corresponds to a range of its content; the whole value where the two are
    /// not spelled alike.
    pub(super) fn within(&self, value: &Range<usize>, content: &str, range: Range<usize>) -> Range<usize> {
        let start = value.start + 1;
        let inner = self.text.get(start..value.end.saturating_sub(1));
        if inner == Some(content) { start + range.start..start + range.end } else { value.clone() }
    }

    /// The findings in the order of the file, with one more that says how many there would have been.
    pub(super) fn into_findings(self) -> Vec<Diagnostic> {
        let mut findings = self.findings.into_inner();
        findings.sort_by(|a, b| (a.span.start, b.severity).cmp(&(b.span.start, a.severity)));
        let more = self.errors.get().saturating_sub(MOST) + self.others.get().saturating_sub(MOST);
        if more > 0 {
            let severity = if self.errors.get() > MOST { Severity::Error } else { Severity::Warning };
            let end = self.text.len();
            let message = format!("{more} more findings are not shown");
            findings.push(Diagnostic { severity, code: "too-many", message, span: end..end, hint: None });
        }
        findings
    }

    /// The span cut to the text and to whole characters.
    fn fit(&self, span: &Range<usize>) -> Range<usize> {
        let start = floor_boundary(self.text, span.start);
        start..floor_boundary(self.text, span.end).max(start)
    }
}

/// What to do about a finding; may be absent.
pub(super) struct Hint(Option<String>);

impl From<String> for Hint {
    fn from(text: String) -> Self {
        Self(Some(text))
    }
}

impl From<&str> for Hint {
    fn from(text: &str) -> Self {
        Self(Some(text.to_owned()))
    }
}

impl From<Option<String>> for Hint {
    fn from(text: Option<String>) -> Self {
        Self(text)
    }
}

/// What checking a file may know of the world around it.
#[derive(Clone, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    hostname: Option<String>,
    now: DateTime<Utc>,
    reads_streams: bool,
    looks_at_host: bool,
}

impl Environment {
    /// An empty one. `now` is where lints about ticks and daylight saving time begin to look.
    pub const fn new(now: DateTime<Utc>) -> Self {
        Self { variables: BTreeMap::new(), hostname: None, now, reads_streams: false, looks_at_host: false }
    }

    /// This process's variables and this machine's host name. Variables that are not UTF-8 are left out.
    pub fn of_process(now: DateTime<Utc>) -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let hostname = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
        Self { variables, hostname: hostname.filter(|name| !name.is_empty()), ..Self::new(now) }
    }

    /// The same for a command that reads the file once: that need not be a regular file, but may be a pipe, whose writer is
    /// waited for.
    #[must_use]
    pub fn reading_streams(self) -> Self {
        Self { reads_streams: true, ..self }
    }

    /// The same for a check of what this host lacks: users, folders, files and programs that the jobs name.
    #[must_use]
    pub fn looking_at_host(self) -> Self {
        Self { looks_at_host: true, ..self }
    }

    /// The same with one variable set.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The same with another host name.
    #[must_use]
    pub fn with_hostname(mut self, name: &str) -> Self {
        self.hostname = Some(name.to_owned());
        self
    }

    /// A variable. Shells set `HOSTNAME` without passing it on, so that one is the machine's own name when it is absent.
    pub fn variable(&self, name: &str) -> Option<&str> {
        let set = self.variables.get(name).map(String::as_str);
        if name == "HOSTNAME" { set.or(self.hostname.as_deref()) } else { set }
    }

    /// Whether the users, folders, files and programs of the jobs are looked for.
    pub(super) const fn looks_at_host(&self) -> bool {
        self.looks_at_host
    }

    /// Opens the file that is checked; else what is wrong, without the path.
    pub(super) fn open(&self, path: &Path) -> Result<File, String> {
        if self.reads_streams { file::open_any(path) } else { file::open(path) }
    }

    /// When the check is made.
    pub const fn now(&self) -> DateTime<Utc> {
        self.now
    }
}

/// The text of a regular file of at most `limit` bytes; else what is wrong, without the path.
pub(super) fn read_text(path: &Path, limit: u64) -> Result<String, String> {
    text_of(file::open(path)?, limit)
}

/// The text of an open file of at most `limit` bytes; else what is wrong, without the path.
pub(super) fn text_of(file: File, limit: u64) -> Result<String, String> {
    let text = String::from_utf8(file::read(file, limit)?);
    text.map_err(|error| not_utf8(error.as_bytes(), error.utf8_error().valid_up_to()))
}

fn not_utf8(bytes: &[u8], at: usize) -> String {
    let valid = bytes.get(..at).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or("");
    let (line, column) = position(valid, at);
    let byte = bytes.get(at).copied().unwrap_or(0);
    format!("is not UTF-8: byte {byte:#04x} at line {line}, column {column}; save the file as UTF-8")
}

/// Without values: they may be secrets.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment")
            .field("variables", &self.variables.keys())
            .field("hostname", &self.hostname)
            .field("now", &self.now)
            .field("reads_streams", &self.reads_streams)
            .field("looks_at_host", &self.looks_at_host)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_name_stands_in_for_a_variable_that_shells_do_not_pass_on() {
        let env = Environment::new(DateTime::UNIX_EPOCH).with_hostname("web-1");
        assert_eq!(env.variable("HOSTNAME"), Some("web-1"));
        assert_eq!(env.variable("OTHER"), None);
        assert_eq!(env.with("HOSTNAME", "set").variable("HOSTNAME"), Some("set"));
    }

    #[test]
    fn values_are_not_shown() {
        let env = Environment::new(DateTime::UNIX_EPOCH).with("TOKEN", "hunter2");
        assert!(!format!("{env:?}").contains("hunter2"));
    }

    #[test]
    fn what_is_not_text_is_told_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.toml");
        std::fs::write(&path, b"a = 1\nb = \"\xff\"\n").unwrap();
        let error = read_text(&path, 2048).unwrap_err();
        assert_eq!(error, "is not UTF-8: byte 0xff at line 2, column 6; save the file as UTF-8");
    }
}
