//! What every part of the check shares: the text, the surroundings, and the list of findings, kept within bounds.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Range;

use crate::config::diagnostic::floor_boundary;
use crate::config::{Diagnostic, Environment, Severity};
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
