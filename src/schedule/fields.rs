//! The six fields of an expression with their limits and names, and the error of an expression.

/// What is wrong with an expression, and what to write instead.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl SyntaxError {
    pub(super) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: Some(hint.into()) }
    }
}

/// One of the six fields.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) least: u32,
    pub(super) most: u32,
    pub(super) names: &'static [&'static str],
}

const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
pub(super) const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

pub(super) const FIELDS: [Field; 6] = [
    Field { name: "second", least: 0, most: 59, names: &[] },
    Field { name: "minute", least: 0, most: 59, names: &[] },
    Field { name: "hour", least: 0, most: 23, names: &[] },
    Field { name: "day-of-month", least: 1, most: 31, names: &[] },
    Field { name: "month", least: 1, most: 12, names: &MONTHS },
    Field { name: "day-of-week", least: 0, most: 7, names: &DAYS },
];
