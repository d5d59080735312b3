//! A report as JSON, for editors and CI. The fields are part of the interface.

use serde::Serialize;

use crate::config::{Diagnostic, Report};

/// One finding in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
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
    pub hint: Option<String>,
}

impl Finding {
    /// A file that could not be read at all.
    pub fn unreadable(file: &str, message: &str) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            column: None,
            severity: "error",
            code: "unreadable-file",
            message: message.to_owned(),
            hint: None,
        }
    }
}

impl Report {
    /// The findings as they are written in JSON.
    pub fn to_findings(&self) -> Vec<Finding> {
        self.findings.iter().map(|finding| self.to_finding(finding)).collect()
    }

    fn to_finding(&self, finding: &Diagnostic) -> Finding {
        let (line, column) = self.position(finding.span.start);
        Finding {
            file: self.path.clone(),
            line: Some(line),
            column: Some(column),
            severity: finding.severity.as_str(),
            code: finding.code,
            message: finding.message.clone(),
            hint: finding.hint.clone(),
        }
    }
}
