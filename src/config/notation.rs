//! What stands inside of values: durations as people write them (`10m`, `1h 30m`, `500ms`, `0s`; a bare number is refused: of what?),
//! and variables (`${V}`, `${V:-default}`, `${V:?message}`, `$$`). As in a shell, `:-` and `:?` also cover a variable that is set but
//! empty. Nothing is nested, and a value is never looked at again.

use std::ops::Range;
use std::time::Duration;

/// The units, largest first, in milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Longer names that people try, and the unit they mean.
const LONG_NAMES: [(&str, &str); 17] = [
    ("day", "d"),
    ("days", "d"),
    ("hour", "h"),
    ("hours", "h"),
    ("hr", "h"),
    ("hrs", "h"),
    ("min", "m"),
    ("mins", "m"),
    ("minute", "m"),
    ("minutes", "m"),
    ("sec", "s"),
    ("secs", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("msec", "ms"),
    ("millisecond", "ms"),
    ("milliseconds", "ms"),
];

/// A text that is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}: {hint}")]
pub struct DurationError {
    /// What is wrong, a lowercase fragment with the text in it.
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

/// Reads a duration: whole numbers, each with `d`, `h`, `m`, `s` or `ms`, with or without spaces between; they add up.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let shown: String = text.chars().take(40).collect();
    let error = |why: &str, hint: String| DurationError { message: format!("{shown:?} {why}"), hint };
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(error("is no duration", EXAMPLES.to_owned()));
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (part, after) = part(rest).map_err(|(why, hint)| error(&why, hint))?;
        total = total.checked_add(part).ok_or_else(|| error("is too long", EXAMPLES.to_owned()))?;
        rest = after;
    }
    Ok(Duration::from_millis(total))
}

const EXAMPLES: &str = "write a number with a unit, like \"500ms\", \"30s\", \"10m\", \"1h 30m\" or \"7d\"";

/// The first part of a text in milliseconds, and what follows it; else what is wrong and what to write.
fn part(text: &str) -> Result<(u64, &str), (String, String)> {
    let examples = || EXAMPLES.to_owned();
    let (digits, rest) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    if digits.is_empty() {
        let sign = text.starts_with(['-', '+']);
        return Err((if sign { "has a sign" } else { "is no duration" }.to_owned(), examples()));
    }
    if rest.starts_with(['.', ',']) {
        return Err(("has a fraction".to_owned(), "use a smaller unit: \"1h 30m\" instead of \"1.5h\"".to_owned()));
    }
    let rest = rest.trim_start();
    let (unit, after) = rest.split_at(rest.find(|c: char| !c.is_alphabetic() && c != 'µ').unwrap_or(rest.len()));
    let Some((_, millis)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(wrong_unit(digits, unit));
    };
    let number: u64 = digits.parse().map_err(|_| ("is too long".to_owned(), examples()))?;
    let value = number.checked_mul(*millis).ok_or_else(|| ("is too long".to_owned(), examples()))?;
    Ok((value, after.trim_start()))
}

fn wrong_unit(digits: &str, unit: &str) -> (String, String) {
    let number: String = digits.chars().take(12).collect();
    if unit.is_empty() {
        return ("has no unit".to_owned(), format!("write \"{number}s\" for seconds, \"{number}m\" for minutes"));
    }
    let lower = unit.to_ascii_lowercase();
    let meant = LONG_NAMES
        .iter()
        .find(|(name, _)| *name == lower)
        .map(|(_, unit)| *unit)
        .or_else(|| UNITS.iter().map(|(name, _)| *name).find(|name| *name == lower));
    let unit: String = unit.chars().take(20).collect();
    let hint = match meant {
        Some(meant) => format!("write \"{number}{meant}\""),
        None => "the units are d, h, m, s and ms".to_owned(),
    };
    (format!("has the unknown unit {unit:?}"), hint)
}

/// A duration as [`parse_duration`] reads it, in its largest units: `1h 30m`. What is below a millisecond is left out.
pub fn format_duration(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut parts = Vec::new();
    for (unit, millis) in UNITS {
        if rest >= millis {
            parts.push(format!("{}{unit}", rest / millis));
            rest %= millis;
        }
    }
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

/// What is wrong with one reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// Where, in bytes of the text.
    pub(super) range: Range<usize>,
    /// A stable word.
    pub(super) code: &'static str,
    /// A lowercase fragment.
    pub(super) message: String,
    /// What to write.
    pub(super) hint: String,
}

/// The text with its references replaced; else all that is wrong with it.
pub(super) fn expand<'v>(text: &str, variable: impl Fn(&str) -> Option<&'v str>) -> Result<String, Vec<Problem>> {
    let mut out = String::with_capacity(text.len());
    let mut problems = Vec::new();
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('$')) {
        let dollar = at + found;
        out.push_str(text.get(at..dollar).unwrap_or(""));
        let (piece, end) = reference(text, dollar, &variable);
        match piece {
            Ok(value) => out.push_str(&value),
            Err(problem) => problems.push(problem),
        }
        at = end;
    }
    out.push_str(text.get(at..).unwrap_or(""));
    if problems.is_empty() { Ok(out) } else { Err(problems) }
}

/// What the reference at `dollar` stands for, and where it ends.
fn reference<'v>(
    text: &str,
    dollar: usize,
    variable: &impl Fn(&str) -> Option<&'v str>,
) -> (Result<String, Problem>, usize) {
    let after = text.get(dollar + 1..).unwrap_or("");
    if after.starts_with('$') {
        return (Ok("$".to_owned()), dollar + 2);
    }
    if let Some(inner) = after.strip_prefix('{') {
        let Some(length) = inner.find('}') else {
            return (Err(unclosed(dollar..text.len())), text.len());
        };
        let end = dollar + 2 + length + 1;
        let body = inner.get(..length).unwrap_or("");
        return (braced(body, dollar..end, variable), end);
    }
    let name: String = after.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        let end = dollar + 1 + name.len();
        return (Err(bare(&name, dollar..end)), end);
    }
    (Ok("$".to_owned()), dollar + 1)
}

fn braced<'v>(body: &str, range: Range<usize>, variable: &impl Fn(&str) -> Option<&'v str>) -> Result<String, Problem> {
    let length = body.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(body.len());
    let (name, rest) = body.split_at(length);
    if !is_variable_name(name) || rest.contains("${") {
        return Err(malformed(body, range));
    }
    let set = variable(name).filter(|value| !value.is_empty());
    if rest.is_empty() {
        return variable(name).map(str::to_owned).ok_or_else(|| unset(name, range));
    }
    if let Some(default) = rest.strip_prefix(":-") {
        return Ok(set.unwrap_or(default).to_owned());
    }
    if let Some(message) = rest.strip_prefix(":?") {
        return set.map(str::to_owned).ok_or_else(|| required(name, message, range));
    }
    Err(malformed(body, range))
}

/// Whether a text can name an environment variable.
pub(super) fn is_variable_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn unset(name: &str, range: Range<usize>) -> Problem {
    let message = format!("variable {name} is not set");
    Problem { range, code: "unset-variable", message, hint: format!("set it, or give a default: ${{{name}:-value}}") }
}

fn required(name: &str, message: &str, range: Range<usize>) -> Problem {
    let why = if message.is_empty() { "it is required" } else { message };
    let message = format!("variable {name} is not set: {why}");
    Problem { range, code: "unset-variable", message, hint: format!("set {name} in the environment of cronward") }
}

fn unclosed(range: Range<usize>) -> Problem {
    let message = "\"${\" without a closing \"}\"".to_owned();
    Problem { range, code: "bad-variable", message, hint: FORMS.to_owned() }
}

fn bare(name: &str, range: Range<usize>) -> Problem {
    let message = format!("${name} is not replaced");
    let hint = format!("write ${{{name}}} for the variable, or $${name} for the text");
    Problem { range, code: "bad-variable", message, hint }
}

fn malformed(body: &str, range: Range<usize>) -> Problem {
    let shown: String = body.chars().take(40).collect();
    let message = format!("${{{shown}}} is not a reference to a variable");
    Problem { range, code: "bad-variable", message, hint: FORMS.to_owned() }
}

const FORMS: &str = "write ${NAME}, ${NAME:-default} or ${NAME:?message}, and $$ for a dollar sign";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_add_up_with_and_without_spaces() {
        for (text, millis) in [
            ("0s", 0),
            ("500ms", 500),
            ("10m", 600_000),
            ("1h 30m", 5_400_000),
            ("1h30m", 5_400_000),
            (" 7 d ", 604_800_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_told_with_what_to_write() {
        for (text, told) in [
            ("", "\"\" is no duration: write a number with a unit"),
            ("abc", "\"abc\" is no duration: write a number"),
            ("10", "\"10\" has no unit: write \"10s\" for seconds, \"10m\" for minutes"),
            ("1h 30", "\"1h 30\" has no unit: write \"30s\""),
            ("10min", "\"10min\" has the unknown unit \"min\": write \"10m\""),
            ("5 Minutes", "\"5 Minutes\" has the unknown unit \"Minutes\": write \"5m\""),
            ("2H", "\"2H\" has the unknown unit \"H\": write \"2h\""),
            ("3x", "\"3x\" has the unknown unit \"x\": the units are d, h, m, s and ms"),
            ("1.5h", "\"1.5h\" has a fraction: use a smaller unit"),
            ("-5s", "\"-5s\" has a sign: write a number"),
            ("10m,5s", "\"10m,5s\" is no duration"),
            ("99999999999999999999s", "\"99999999999999999999s\" is too long"),
            ("18446744073709551615d", "\"18446744073709551615d\" is too long"),
        ] {
            let error = parse_duration(text).unwrap_err().to_string();
            assert!(error.starts_with(told), "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_duration_reads_back_as_written(millis in 0..u64::MAX) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,20}") {
            let _ = parse_duration(&text);
        }
    }

    fn with(text: &str) -> Result<String, Vec<String>> {
        let variable = |name: &str| match name {
            "A" => Some("1"),
            "EMPTY" => Some(""),
            "MONEY" => Some("${A}"),
            _ => None,
        };
        expand(text, variable)
            .map_err(|problems| problems.into_iter().map(|p| format!("{:?} {}", p.range, p.message)).collect())
    }

    #[test]
    fn each_form_is_replaced() {
        for (text, value) in [
            ("", ""),
            ("a${A}b", "a1b"),
            ("${B:-x y}", "x y"),
            ("${EMPTY:-x}", "x"),
            ("${EMPTY}", ""),
            ("${A:?needed}", "1"),
            ("$${A} costs $5 $", "${A} costs $5 $"),
            ("${B:-}", ""),
        ] {
            assert_eq!(with(text).as_deref(), Ok(value), "{text}");
        }
    }

    #[test]
    fn a_value_is_not_looked_at_again() {
        assert_eq!(with("${MONEY}").as_deref(), Ok("${A}"));
    }

    #[test]
    fn every_wrong_reference_is_told_with_its_place() {
        assert_eq!(
            with("${B} $A ${} ${A-b} ${C:?set it} ${D:-${A}"),
            Err(vec![
                "0..4 variable B is not set".to_owned(),
                "5..7 $A is not replaced".to_owned(),
                "8..11 ${} is not a reference to a variable".to_owned(),
                "12..18 ${A-b} is not a reference to a variable".to_owned(),
                "19..31 variable C is not set: set it".to_owned(),
                "32..41 ${D:-${A} is not a reference to a variable".to_owned(),
            ])
        );
        assert_eq!(with("x${A"), Err(vec!["1..4 \"${\" without a closing \"}\"".to_owned()]));
    }

    proptest! {
        #[test]
        fn no_text_with_variables_makes_it_panic(text in "(\\$|\\{|\\}|:-|:\\?|A|ä|_){0,20}") {
            let _ = with(&text);
        }
    }
}
