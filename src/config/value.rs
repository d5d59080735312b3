//! One value of the file: its type, its range, its words. What is wrong is told with what to write instead.

use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::context::{Context, Hint};
use crate::config::notation;
use crate::config::notation::{format_duration, parse_duration};
use crate::zone;

const STRING: &str = "a string";

/// One value of the file.
pub(super) struct Entry<'a> {
    pub(super) ctx: &'a Context<'a>,
    /// As messages name it: `lease_ttl`, `env.PORT`, `command[1]`.
    pub(super) name: String,
    value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Entry<'a> {
    pub(super) const fn new(ctx: &'a Context<'a>, name: String, value: &'a Spanned<DeValue<'a>>) -> Self {
        Self { ctx, name, value }
    }

    pub(super) fn value(&self) -> &'a DeValue<'a> {
        self.value.get_ref()
    }

    pub(super) fn span(&self) -> Range<usize> {
        self.value.span()
    }

    /// Tells that the value cannot be used. `what` follows the name of the key.
    pub(super) fn refuse(&self, code: &'static str, what: &str, hint: impl Into<Hint>) {
        self.ctx.error(code, self.span(), format!("{} {what}", self.name), hint);
    }

    /// Tells that the value cannot be used, in the words of somebody who does not know the key.
    pub(super) fn object(&self, code: &'static str, error: impl Display, hint: impl Into<Hint>) {
        self.ctx.error(code, self.span(), format!("{}: {error}", self.name), hint);
    }

    /// Tells that the value has another type than the one expected.
    pub(super) fn wrong_type<T>(&self, expected: &str, example: &str) -> Option<T> {
        let what = format!("must be {expected}, not {}", kind(self.value()));
        let quoted = expected == STRING && !matches!(self.value(), DeValue::Array(_) | DeValue::Table(_));
        let hint = match self.ctx.text.get(self.span()).filter(|_| quoted) {
            Some(written) => self.assignment(&format!("{written:?}")),
            None => self.assignment(example),
        };
        self.refuse("wrong-type", &what, hint);
        None
    }

    fn assignment(&self, example: &str) -> String {
        // What is inside of a list or a table is not written with its whole name.
        if self.name.contains(['[', '.']) {
            format!("write {example}")
        } else {
            format!("write {} = {example}", self.name)
        }
    }

    /// The text as written.
    pub(super) fn raw(&self, example: &str) -> Option<&'a str> {
        match self.value() {
            DeValue::String(text) if text.contains('\0') => {
                self.refuse("bad-text", "has a NUL byte in it", "remove \\u0000");
                None
            }
            DeValue::String(text) => Some(text.as_ref()),
            _ => self.wrong_type(STRING, example),
        }
    }

    /// The text with its variables replaced.
    pub(super) fn text(&self, example: &str) -> Option<String> {
        let raw = self.raw(example)?;
        match notation::expand(raw, |name| self.ctx.env.variable(name)) {
            Ok(text) => Some(text),
            Err(problems) => {
                for problem in problems {
                    if self.ctx.is_full() {
                        break;
                    }
                    let span = self.ctx.within(&self.span(), raw, problem.range);
                    self.ctx.error(problem.code, span, format!("{}: {}", self.name, problem.message), problem.hint);
                }
                None
            }
        }
    }

    /// The same, and not empty.
    pub(super) fn filled_text(&self, example: &str) -> Option<String> {
        let text = self.text(example)?;
        if text.trim().is_empty() {
            self.refuse("empty", "is empty", format!("write something like {example}, or leave it out"));
            return None;
        }
        Some(text)
    }

    /// A duration within bounds.
    pub(super) fn duration(&self, bounds: RangeInclusive<Duration>) -> Option<Duration> {
        let example = format!("{:?}", example_within(&bounds));
        let text = match self.value() {
            DeValue::Integer(number) => return self.bare_number(number.as_str(), &example),
            DeValue::String(_) => self.text(&example)?,
            _ => return self.wrong_type("a duration", &example),
        };
        match parse_duration(&text) {
            Ok(duration) if bounds.contains(&duration) => Some(duration),
            Ok(duration) => {
                let (least, most) = (format_duration(*bounds.start()), format_duration(*bounds.end()));
                let what = format!("is {}, which is out of range", format_duration(duration));
                self.refuse("out-of-range", &what, format!("from \"{least}\" to \"{most}\""));
                None
            }
            Err(error) => {
                self.object("bad-duration", error.message, error.hint);
                None
            }
        }
    }

    fn bare_number<T>(&self, number: &str, example: &str) -> Option<T> {
        let seconds: String = number.chars().take(12).collect();
        let plain = !seconds.is_empty() && seconds.bytes().all(|byte| byte.is_ascii_digit());
        let hint =
            self.assignment(&if plain { format!("\"{seconds}s\" if seconds were meant") } else { example.to_owned() });
        self.refuse("bad-duration", "is a number without a unit", hint);
        None
    }

    /// A whole number within bounds.
    pub(super) fn integer(&self, bounds: RangeInclusive<i64>, example: i64) -> Option<i64> {
        let DeValue::Integer(number) = self.value() else {
            return self.wrong_type("a whole number", &example.to_string());
        };
        let value = i64::from_str_radix(number.as_str(), number.radix()).ok();
        let within = value.filter(|value| bounds.contains(value));
        if within.is_none() {
            let shown: String = number.as_str().chars().take(24).collect();
            let what = format!("is {shown}, which is out of range");
            self.refuse("out-of-range", &what, format!("from {} to {}", bounds.start(), bounds.end()));
        }
        within
    }

    /// A number of bytes within bounds: a whole number, or a text like `64KiB`.
    pub(super) fn bytes(&self, bounds: RangeInclusive<i64>) -> Option<i64> {
        let DeValue::String(_) = self.value() else { return self.integer(bounds, 65_536) };
        let text = self.text("\"64KiB\"")?;
        let units = [("KiB", 1_024), ("MiB", 1_048_576), ("kB", 1_000), ("MB", 1_000_000), ("B", 1), ("", 1)];
        let parsed = units
            .iter()
            .find_map(|(unit, factor)| text.strip_suffix(unit)?.trim_end().parse::<i64>().ok()?.checked_mul(*factor));
        let within = parsed.filter(|value| bounds.contains(value));
        if within.is_none() {
            let shown: String = text.chars().take(24).collect();
            let hint = format!("write a number of bytes from {} to {}, or \"64KiB\"", bounds.start(), bounds.end());
            self.refuse("out-of-range", &format!("cannot be {shown:?}"), hint);
        }
        within
    }

    /// One word out of several.
    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Option<T> {
        self.word_or(words, "")
    }

    /// One word out of several. `also` follows their list in messages.
    pub(super) fn word_or<T: Copy>(&self, words: &[(&str, T)], also: &str) -> Option<T> {
        let list = || words.iter().map(|(word, _)| format!("{word:?}")).collect::<Vec<_>>().join(", ") + also;
        let DeValue::String(_) = self.value() else {
            let example = words.first().map_or_else(String::new, |(word, _)| format!("{word:?}"));
            return self.wrong_type(&format!("one of {}", list()), &example);
        };
        let text = self.text("\"…\"")?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let shown: String = text.chars().take(40).collect();
        let hint = match nearest(&text, words.iter().map(|(word, _)| *word)) {
            Some(near) => format!("did you mean {near:?}? One of {}", list()),
            None => format!("one of {}", list()),
        };
        self.refuse("bad-word", &format!("cannot be {shown:?}"), hint);
        None
    }

    /// The table that the value is.
    pub(super) fn table(&self, hint: &str) -> Option<&'a DeTable<'a>> {
        if let DeValue::Table(table) = self.value() {
            return Some(table);
        }
        self.refuse("wrong-type", &format!("must be a table, not {}", kind(self.value())), hint);
        None
    }

    /// The items of a list.
    pub(super) fn items(&self, expected: &str, example: &str) -> Option<Vec<Entry<'a>>> {
        let DeValue::Array(items) = self.value() else {
            return self.wrong_type(expected, example);
        };
        let named = |(index, item)| Entry::new(self.ctx, format!("{}[{index}]", self.name), item);
        Some(items.iter().enumerate().map(named).collect())
    }

    /// The fields of a table: name, where the name is, value.
    pub(super) fn fields(&self, expected: &str, example: &str) -> Option<Vec<(&'a str, Range<usize>, Entry<'a>)>> {
        let DeValue::Table(fields) = self.value() else {
            return self.wrong_type(expected, example);
        };
        let named = |(key, value): (&'a Spanned<std::borrow::Cow<'a, str>>, &'a Spanned<DeValue<'a>>)| {
            let name = key.get_ref().as_ref();
            (name, key.span(), Entry::new(self.ctx, format!("{}.{name}", self.name), value))
        };
        Some(fields.iter().map(named).collect())
    }
}

fn example_within(bounds: &RangeInclusive<Duration>) -> String {
    let minute = Duration::from_secs(60);
    let example = if bounds.contains(&minute) { minute } else { *bounds.end() };
    format_duration(example)
}

/// What a value is, in words.
const fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Longer texts are no slip of the pen, and comparing them costs time.
const LONGEST: usize = 64;

/// The nearest of `known` to `word`, when it is near enough to be meant.
pub(super) fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if word.len() > LONGEST {
        return None;
    }
    let lower = word.to_ascii_lowercase().replace('-', "_");
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&lower, &name.to_ascii_lowercase().replace('-', "_")), name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, name)| *distance <= (word.len().max(name.len()) / 3).max(1))
        .map(|(_, name)| name)
}

/// What a name that is refused could be instead.
pub(super) fn nearest_allowed(name: &str) -> String {
    let lower: String = name.chars().take(52).flat_map(char::to_lowercase).collect();
    let allowed = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' };
    let mapped: String = lower.chars().map(allowed).collect();
    mapped.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
}

/// What to write in the place of a name that is no time zone.
pub(crate) fn zone_hint(name: &str) -> String {
    match nearest_zone(name) {
        Some(near) if near == name => "update the tzdata package of this host".to_owned(),
        Some(near) => format!("did you mean {near:?}?"),
        None => "write an IANA name like \"UTC\" or \"Europe/Berlin\"".to_owned(),
    }
}

/// The nearest IANA time zone: also `Berlin` for `Europe/Berlin`.
fn nearest_zone(word: &str) -> Option<&'static str> {
    let zones = zone::known_names;
    let spelled = word.trim().replace(' ', "_");
    let city = |name: &&'static str| name.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(&spelled));
    let same = |name: &&'static str| name.eq_ignore_ascii_case(&spelled);
    zones()
        .find(same)
        .or_else(|| zones().find(|name| name.contains('/') && city(name)))
        .or_else(|| nearest(&spelled, zones()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_another_word_finds_none() {
        let known = ["lease_ttl", "done_ttl", "timeout"];
        assert_eq!(nearest("leasettl", known), Some("lease_ttl"));
        assert_eq!(nearest("lease-ttl", known), Some("lease_ttl"));
        assert_eq!(nearest("Timeuot", known), Some("timeout"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest(&"x".repeat(1_000), known), None);
    }

    #[test]
    fn a_city_finds_its_zone() {
        assert_eq!(nearest_zone("Berlin"), Some("Europe/Berlin"));
        assert_eq!(nearest_zone("new york"), Some("America/New_York"));
        assert_eq!(nearest_zone("Europe/Berln"), Some("Europe/Berlin"));
        assert_eq!(nearest_zone("utc"), Some("UTC"));
        assert_eq!(nearest_zone("europe/berlin"), Some("Europe/Berlin"));
        assert_eq!(nearest_zone("Atlantis/Somewhere/Else"), None);
    }
}
