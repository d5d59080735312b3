//! What is wrong with a file, where, and what to do. Data only: `render` and `json` show it.

use std::fmt;
use std::ops::Range;

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
pub struct Report {
    /// The file's path, as given.
    pub path: String,
    /// Its text, with secrets masked byte by byte, so that it can be shown and spans still fit.
    pub text: String,
    /// In the order of the file.
    pub findings: Vec<Diagnostic>,
}

impl Report {
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
impl fmt::Display for Report {
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
        let mut report = Report { path: "jobs.toml".to_owned(), text: String::new(), findings: Vec::new() };
        assert_eq!(report.summary(), "jobs.toml: no errors");
        report.findings = vec![finding(Severity::Error), finding(Severity::Error), finding(Severity::Warning)];
        assert_eq!(report.summary(), "jobs.toml: 2 errors, 1 warning");
    }
}
