//! A report as people read it: the source line, a caret, the hint. Only the line of a finding is shown, never more of it.

use std::borrow::Cow;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::config::{Diagnostic, Report, Severity};
use crate::text::is_harmful;

/// Columns that are shown of a line. Longer lines are cut around the finding.
const WIDTH: usize = 120;

/// Bytes of a line that are shown on each side of a finding: the renderer need not look at a line of megabytes.
const AROUND: usize = 400;

impl Report {
    /// Every finding with its source line, a caret and its hint; coloured for a terminal when asked.
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
            Some(hint) => group.element(Level::HELP.message(hint.as_str())),
            None => group,
        }
    }

    /// The line on which a span begins, without its end, and cut when it is very long.
    fn line_of(&self, span: &Range<usize>) -> Range<usize> {
        let at = super::diagnostic::floor_boundary(&self.text, span.start);
        let (before, after) = self.text.split_at(at);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let end = at + after.find(['\n', '\r']).unwrap_or(after.len());
        let start = start.max(super::diagnostic::floor_boundary(&self.text, at.saturating_sub(AROUND)));
        start..end.min(super::diagnostic::floor_boundary(&self.text, at + AROUND))
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
