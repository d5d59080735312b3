//! What is wrong with a file, where, and what to do; as people read it, with the source line, a caret and the fix, and as JSON for
//! editors and CI, whose fields are part of the interface. Only the line of a finding is shown, never more of it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Serialize;

use crate::text::is_harmful;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The file can be used; it is worth knowing.
    Note,
    /// The file can be used, but may not do what was meant.
    Warning,
    /// It cannot be used.
    Error,
}

impl Severity {
    /// The word used in reports and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// A stable word for the finding, like `unknown-key`.
    pub code: &'static str,
    /// What is wrong; a lowercase fragment that names the key.
    pub message: String,
    /// Where, in bytes of the file.
    pub span: Range<usize>,
    /// What to do.
    pub hint: Option<String>,
}

/// Everything found in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    /// The file's path, as given.
    pub path: String,
    /// Its text, with secrets masked byte by byte, so that it can be shown and spans still fit.
    pub text: String,
    /// In the order of the file.
    pub findings: Vec<Diagnostic>,
}

impl Diagnostics {
    /// How many findings are of this severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// Whether the file cannot be used.
    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// The 1-based line and column, in characters, of a byte of the text.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        position(&self.text, offset)
    }

    /// One line, like `jobs.toml: 2 errors, 1 warning`.
    pub fn summary(&self) -> String {
        let counts = [Severity::Error, Severity::Warning, Severity::Note].map(|severity| {
            let count = self.count(severity);
            let plural = if count == 1 { "" } else { "s" };
            (count, format!("{count} {}{plural}", severity.as_str()))
        });
        let told: Vec<String> = counts.into_iter().filter(|(count, _)| *count > 0).map(|(_, words)| words).collect();
        let told = if told.is_empty() { "no errors".to_owned() } else { told.join(", ") };
        format!("{}: {told}", self.path)
    }
}

/// The 1-based line and column, in characters, of a byte of a text.
pub(super) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..floor_boundary(text, offset)).unwrap_or("");
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    (line, before.get(line_start..).unwrap_or("").chars().count() + 1)
}

/// The nearest character boundary at or before an offset.
pub(super) fn floor_boundary(text: &str, offset: usize) -> usize {
    let mut at = offset.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// One finding per line, without the source: for logs.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.findings.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            let (line, column) = self.position(finding.span.start);
            write!(f, "{}:{line}:{column}: {}: {}", self.path, finding.severity.as_str(), finding.message)?;
            if let Some(hint) = &finding.hint {
                write!(f, " ({hint})")?;
            }
        }
        Ok(())
    }
}

/// Columns that are shown of a line. Longer lines are cut around the finding.
const WIDTH: usize = 120;

/// Bytes of a line that are shown on each side of a finding: the renderer need not look at a line of megabytes.
const AROUND: usize = 400;

impl Diagnostics {
    /// Every finding with its source line, a caret and its fix; coloured for a terminal when asked.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() }.term_width(WIDTH);
        let mut out = String::new();
        for finding in &self.findings {
            out.push_str(renderer.render(&[self.group(finding)]).trim_end());
            out.push_str("\n\n");
        }
        out
    }

    fn group<'r>(&'r self, finding: &'r Diagnostic) -> Group<'r> {
        let (level, line) = (level(finding.severity), self.line_of(&finding.span));
        let number = self.position(line.start).0;
        let source = self.text.get(line.clone()).unwrap_or("");
        let from = finding.span.start.saturating_sub(line.start).min(source.len());
        let to = finding.span.end.saturating_sub(line.start).clamp(from, source.len());
        let snippet = Snippet::source(visible(source))
            .line_start(number)
            .path(self.path.as_str())
            .annotation(AnnotationKind::Primary.span(from..to));
        let group = level.primary_title(&finding.message).id(finding.code).element(snippet);
        match &finding.hint {
            Some(hint) => group.element(Level::HELP.with_name(Some("fix")).message(hint.as_str())),
            None => group,
        }
    }

    /// The line on which a span begins, without its end, and cut when it is very long.
    fn line_of(&self, span: &Range<usize>) -> Range<usize> {
        let at = crate::config::diagnostic::floor_boundary(&self.text, span.start);
        let (before, after) = self.text.split_at(at);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let end = at + after.find(['\n', '\r']).unwrap_or(after.len());
        let start = start.max(crate::config::diagnostic::floor_boundary(&self.text, at.saturating_sub(AROUND)));
        start..end.min(crate::config::diagnostic::floor_boundary(&self.text, at + AROUND))
    }
}

/// A source line without what the renderer lets pass though it moves a cursor or turns the reading direction. Each is
/// replaced by a character of its length, so that spans still fit.
fn visible(source: &str) -> Cow<'_, str> {
    if !source.chars().any(is_harmful) {
        return Cow::Borrowed(source);
    }
    let stand_in = |c: char| match c.len_utf8() {
        2 if is_harmful(c) => '¿',
        3 if is_harmful(c) => char::REPLACEMENT_CHARACTER,
        _ => c,
    };
    Cow::Owned(source.chars().map(stand_in).collect())
}

const fn level(severity: Severity) -> Level<'static> {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    }
}

/// One finding in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JsonFinding {
    /// The file's path, as given.
    pub file: String,
    /// 1-based; null when the file could not be read.
    pub line: Option<usize>,
    /// 1-based, in characters; null when the file could not be read.
    pub column: Option<usize>,
    /// `error`, `warning` or `note`.
    pub severity: &'static str,
    /// A stable word for the finding.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do; null when that cannot be said.
    pub fix: Option<String>,
}

impl JsonFinding {
    /// A file that could not be read at all.
    pub fn unreadable(file: &str, message: &str) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            column: None,
            severity: "error",
            code: "unreadable-file",
            message: message.to_owned(),
            fix: None,
        }
    }
}

impl Diagnostics {
    /// The findings as they are written in JSON.
    pub fn to_findings(&self) -> Vec<JsonFinding> {
        self.findings.iter().map(|finding| self.to_finding(finding)).collect()
    }

    fn to_finding(&self, finding: &Diagnostic) -> JsonFinding {
        let (line, column) = self.position(finding.span.start);
        JsonFinding {
            file: self.path.clone(),
            line: Some(line),
            column: Some(column),
            severity: finding.severity.as_str(),
            code: finding.code,
            message: finding.message.clone(),
            fix: finding.hint.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_counts_characters_and_never_panics() {
        let text = "ä = 1\n  b = 2\n";
        assert_eq!(position(text, 0), (1, 1));
        assert_eq!(position(text, 1), (1, 1), "inside of a character");
        assert_eq!(position(text, 3), (1, 3));
        assert_eq!(position(text, 9), (2, 3));
        assert_eq!(position(text, 9_999), (3, 1));
    }

    #[test]
    fn a_summary_names_only_what_there_is() {
        let finding = |severity| Diagnostic { severity, code: "x", message: String::new(), span: 0..0, hint: None };
        let mut report = Diagnostics { path: "jobs.toml".to_owned(), text: String::new(), findings: Vec::new() };
        assert_eq!(report.summary(), "jobs.toml: no errors");
        report.findings = vec![finding(Severity::Error), finding(Severity::Error), finding(Severity::Warning)];
        assert_eq!(report.summary(), "jobs.toml: 2 errors, 1 warning");
    }
}
