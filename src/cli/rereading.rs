//! The file as a running daemon reads it again: what is wrong with it is one line.

use std::path::Path;

use crate::clock::{Clock, SystemClock};
use crate::config::{self, Config, LoadError};

/// The file; else why it cannot be used.
pub(super) fn read(path: &Path) -> Result<Config, String> {
    let environment = config::Environment::of_process(SystemClock.now().wall);
    match config::load(path, &environment) {
        Ok((config, _warnings)) => Ok(config),
        Err(error @ LoadError::File { .. }) => Err(error.to_string()),
        Err(LoadError::Invalid(report)) => {
            let first = report.findings.iter().find(|finding| finding.severity == config::Severity::Error);
            let place = first.map(|finding| (report.position(finding.span.start), finding.message.as_str()));
            let told = place.map(|((line, column), message)| format!("{}:{line}:{column}: {message}", report.path));
            Err(format!("{}; run cronward check", told.unwrap_or_else(|| report.summary())))
        }
    }
}
