//! The text format of Prometheus, version 0.0.4: one line for each series, written as it comes and kept nowhere.

use std::fmt::{self, Display, Write};
use std::time::Duration;

use crate::metrics::family::{Family, PREFIX};
use crate::metrics::histogram::{Bounds, Histogram};

/// Writes families one after the other.
pub(super) struct Exposition<'a> {
    pub(super) out: &'a mut dyn Write,
    pub(super) namespace: &'a str,
}

impl Exposition<'_> {
    /// What a family is; its series follow.
    pub(super) fn head(&mut self, family: &Family) -> fmt::Result {
        let Family { name, kind, help, .. } = family;
        writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {}", kind.as_str())
    }

    /// One series, with the values of its family's labels in their order.
    pub(super) fn series(&mut self, family: &Family, labels: &[&str], value: impl Display) -> fmt::Result {
        self.name(family, "")?;
        self.labels(family, labels, None)?;
        writeln!(self.out, " {value}")
    }

    /// A family of one series, and no label but the namespace.
    pub(super) fn alone(&mut self, family: &Family, value: impl Display) -> fmt::Result {
        self.head(family)?;
        self.series(family, &[], value)
    }

    /// The series of a histogram.
    pub(super) fn histogram(
        &mut self,
        family: &Family,
        labels: &[&str],
        bounds: &Bounds,
        histogram: &Histogram,
    ) -> fmt::Result {
        let (cumulated, count) = histogram.cumulated();
        let written = bounds.iter().map(|(_, written)| *written).chain(["+Inf"]);
        for (bound, at_most) in written.zip(cumulated.into_iter().chain([count])) {
            self.name(family, "_bucket")?;
            self.labels(family, labels, Some(bound))?;
            writeln!(self.out, " {at_most}")?;
        }
        self.name(family, "_sum")?;
        self.labels(family, labels, None)?;
        writeln!(self.out, " {}", Seconds(histogram.sum()))?;
        self.name(family, "_count")?;
        self.labels(family, labels, None)?;
        writeln!(self.out, " {count}")
    }

    fn name(&mut self, family: &Family, suffix: &str) -> fmt::Result {
        write!(self.out, "{}{suffix}", family.name)
    }

    fn labels(&mut self, family: &Family, values: &[&str], bound: Option<&str>) -> fmt::Result {
        let own = family.name.starts_with(PREFIX).then_some(("namespace", self.namespace));
        let named = family.labels.iter().copied().zip(values.iter().copied());
        let all = own.into_iter().chain(named).chain(bound.map(|bound| ("le", bound)));
        let mut before = '{';
        for (name, value) in all {
            write!(self.out, "{before}{name}=\"{}\"", Escaped(value))?;
            before = ',';
        }
        if before == ',' { self.out.write_char('}') } else { Ok(()) }
    }
}

/// The value of a label.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some((plain, special)) = rest.find(['\\', '"', '\n']).and_then(|at| rest.split_at_checked(at)) {
            f.write_str(plain)?;
            let mut chars = special.chars();
            f.write_str(match chars.next() {
                Some('\n') => "\\n",
                Some('"') => "\\\"",
                _ => "\\\\",
            })?;
            rest = chars.as_str();
        }
        f.write_str(rest)
    }
}

/// A span in seconds.
pub(super) struct Seconds(pub(super) Duration);

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.as_secs_f64())
    }
}

/// Milliseconds in seconds.
pub(super) struct Millis(pub(super) i64);

impl Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, millis) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        match (millis / 1_000, millis % 1_000) {
            (seconds, 0) => write!(f, "{sign}{seconds}"),
            (seconds, rest) => write!(f, "{sign}{seconds}.{rest:03}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_in_a_label_is_escaped() {
        assert_eq!(Escaped("a\\b\"c\nd\"").to_string(), "a\\\\b\\\"c\\nd\\\"");
        assert_eq!(Escaped("0 * * * *").to_string(), "0 * * * *");
        assert_eq!(Escaped("é\"ü").to_string(), "é\\\"ü");
    }

    #[test]
    fn milliseconds_are_seconds() {
        let told = [0, 1, 1_000, -1_500, -20, 1_795_269_600_123].map(|millis| Millis(millis).to_string());
        assert_eq!(told, ["0", "0.001", "1", "-1.500", "-0.020", "1795269600.123"]);
    }
}
