//! The table at the end: each figure with its bound, its measured value and how they compare.

use std::fmt;
use std::time::Duration;

/// One line.
#[derive(Debug)]
struct Line {
    figure: String,
    bound: String,
    measured: String,
    verdict: &'static str,
}

/// What was measured, in the order of measuring.
#[derive(Debug, Default)]
pub(crate) struct Table(Vec<Line>);

impl Table {
    /// A value that may not be above its bound; both are shown with the unit.
    pub(crate) fn at_most(&mut self, figure: &str, bound: f64, measured: f64, unit: &str) {
        let verdict = if measured <= bound { "ok" } else { "**MISSED**" };
        self.add(figure, format!("≤ {}", number(bound, unit)), number(measured, unit), verdict);
    }

    /// A duration that may not be above its bound, with further words on it.
    pub(crate) fn within(&mut self, figure: &str, bound: Duration, measured: Duration, more: &str) {
        let verdict = if measured <= bound { "ok" } else { "**MISSED**" };
        let shown = if more.is_empty() { span(measured) } else { format!("{} ({more})", span(measured)) };
        self.add(figure, format!("≤ {}", span(bound)), shown, verdict);
    }

    /// A value without a bound.
    pub(crate) fn told(&mut self, figure: &str, measured: impl Into<String>) {
        self.add(figure, "none".to_owned(), measured.into(), "");
    }

    /// A claim that holds or does not.
    pub(crate) fn is_so(&mut self, figure: &str, bound: &str, measured: impl Into<String>, holds: bool) {
        self.add(figure, bound.to_owned(), measured.into(), if holds { "ok" } else { "**MISSED**" });
    }

    fn add(&mut self, figure: &str, bound: String, measured: String, verdict: &'static str) {
        eprintln!("  {figure}: {measured} (bound: {bound}) {verdict}");
        self.0.push(Line { figure: figure.to_owned(), bound, measured, verdict });
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| figure | bound | measured | |")?;
        writeln!(f, "|---|---|---|---|")?;
        self.0.iter().try_for_each(|line| {
            writeln!(f, "| {} | {} | {} | {} |", line.figure, line.bound, line.measured, line.verdict)
        })
    }
}

fn number(value: f64, unit: &str) -> String {
    let shown = if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") };
    if unit.is_empty() { shown } else { format!("{shown} {unit}") }
}

/// A duration with three digits or so.
pub(crate) fn span(span: Duration) -> String {
    let micros = span.as_secs_f64() * 1e6;
    match micros {
        ..1e3 => format!("{micros:.0} µs"),
        1e3..1e5 => format!("{:.1} ms", micros / 1e3),
        1e5..1e6 => format!("{:.0} ms", micros / 1e3),
        _ if span.subsec_nanos() == 0 => format!("{} s", span.as_secs()),
        _ => format!("{:.2} s", micros / 1e6),
    }
}
