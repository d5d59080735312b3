//! What may be written as a schedule, and what to say where something else is. Compiles the text with croner; never looks
//! at a time zone.
//!
//! Stricter than croner where it would read something that nobody meant: a month's name in the minute field, an empty
//! list item, a seventh field.

use chrono::{DateTime, TimeDelta};
use croner::describe::Language;
use croner::parser::CronParser;

use super::dialects;
use super::fields::{FIELDS, Field, SyntaxError};
use super::pattern::{Pattern, Set};

/// The longest expression. Sixty minutes as a list take 170 characters.
const LONGEST: usize = 200;

/// A compiled expression.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) pattern: Pattern,
    /// No `*` in second, minute and hour; see `expression`.
    pub(super) fixed: bool,
    /// The six fields, in capital letters.
    fields: Box<str>,
}

impl Compiled {
    /// The expression in words. croner takes a step for what is written and not for what fits: it says "every 7 minutes" of
    /// `*/7`, which ticks at minute 56 and then at 0. So it is given the values, and a step only where that is regular.
    pub(super) fn words(&self, language: impl Language) -> String {
        let [_, _, _, day, _, weekday] = self.fields();
        let Pattern { seconds, minutes, hours, months, .. } = &self.pattern;
        let (seconds, minutes, hours) = (regular(*seconds, 60), regular(*minutes, 60), regular(*hours, 24));
        let months = if months.len() == 12 { "*".to_owned() } else { list(*months) };
        let spelled = format!("{seconds} {minutes} {hours} {day} {months} {weekday}");
        CronParser::new().parse(&spelled).map_or(spelled, |cron| cron.describe_lang(language))
    }

    /// Second, minute, hour, day of month, month, day of week.
    pub(super) fn fields(&self) -> [&str; 6] {
        let mut fields = self.fields.split(' ');
        [(); 6].map(|()| fields.next().unwrap_or("*"))
    }
}

/// The values of a field as they are said best: all, each n-th where these are evenly spread, or one by one.
fn regular(set: Set, all: u32) -> String {
    let step = all / set.len().max(1);
    let even = set.len() > 1 && set.values().eq((0..all).step_by(usize::try_from(step).unwrap_or(1)));
    match (even, step) {
        (true, 1) => "*".to_owned(),
        (true, step) => format!("*/{step}"),
        (false, _) => list(set),
    }
}

fn list(set: Set) -> String {
    set.values().map(|value| value.to_string()).collect::<Vec<_>>().join(",")
}

const FORM: &str = "write 5 fields: minute hour day-of-month month day-of-week, like \"0 * * * *\"; or 6 with seconds first; or @hourly";

#[cfg(test)]
thread_local! {
    static COMPILED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// How many expressions this thread has compiled.
#[cfg(test)]
pub(crate) fn compiled_here() -> usize {
    COMPILED.get()
}

/// Reads an expression.
pub(super) fn compile(expression: &str) -> Result<Compiled, SyntaxError> {
    #[cfg(test)]
    COMPILED.set(COMPILED.get() + 1);
    if expression.len() > LONGEST {
        return Err(SyntaxError::new(format!("longer than {LONGEST} characters"), "use ranges and steps, like 0-30/5"));
    }
    let odd = expression.chars().find(|c| !c.is_ascii_graphic() && !matches!(c, ' ' | '\t'));
    if let Some(odd) = odd {
        return Err(SyntaxError::new(format!("holds the character {odd:?}"), FORM));
    }
    dialects::zone_within(expression)?;
    let text = expression.trim().to_ascii_uppercase();
    let spelled = if text.starts_with('@') { nickname(&text)? } else { &*text };
    let fields: Vec<&str> = spelled.split_ascii_whitespace().collect();
    let fields: [&str; 6] = match *fields.as_slice() {
        [] => return Err(SyntaxError::new("empty", FORM)),
        [a, b, c, d, e] => ["0", a, b, c, d, e],
        [a, b, c, d, e, f] => [a, b, c, d, e, f],
        [_, _, _, _, _, _, _] => {
            return Err(SyntaxError::new(
                "has 7 fields: years are not supported",
                "leave the year out; `enabled` ends a job",
            ));
        }
        _ => return Err(SyntaxError::new(format!("has {} fields", fields.len()), FORM)),
    };
    dialects::quartz_weekday(fields[3], fields[5])?;
    build(fields)
}

fn nickname(text: &str) -> Result<&'static str, SyntaxError> {
    Ok(match text {
        "@HOURLY" => "0 * * * *",
        "@DAILY" | "@MIDNIGHT" => "0 0 * * *",
        "@WEEKLY" => "0 0 * * 0",
        "@MONTHLY" => "0 0 1 * *",
        "@YEARLY" | "@ANNUALLY" => "0 0 1 1 *",
        "@REBOOT" => {
            return Err(SyntaxError::new(
                "@reboot has no time, so it has no slot",
                "start the command from a systemd unit, or give it a time",
            ));
        }
        _ if text.starts_with("@EVERY") => {
            return Err(SyntaxError::new("@every is not supported", "write \"*/5 * * * *\" for every five minutes"));
        }
        _ => {
            return Err(SyntaxError::new(
                "not a known short form",
                "there are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually",
            ));
        }
    })
}

fn build(fields: [&str; 6]) -> Result<Compiled, SyntaxError> {
    let numbered = || FIELDS.iter().zip(fields).enumerate();
    let strange = numbered().find(|(index, (field, text))| !field.knows_words_of(text, *index));
    if let Some((_, (field, text))) = strange {
        return Err(field.fault(text));
    }
    let weekday = sunday_alone(fields[5]);
    let [second, minute, hour, day, month, _] = fields;
    let joined = [second, minute, hour, day, month, &*weekday].join(" ");
    let cron = CronParser::new().parse(&joined).map_err(|error| {
        let culprit = numbered().find(|(index, (_, text))| !reads_alone(text, *index));
        let whole = || SyntaxError::new(format!("cannot be read: {error}"), FORM);
        culprit.map_or_else(whole, |(_, (field, text))| field.fault(text))
    })?;
    let pattern = Pattern::of(&cron.pattern);
    if pattern.next((DateTime::UNIX_EPOCH - TimeDelta::seconds(1)).naive_utc()).is_none() {
        return Err(SyntaxError::new("never fires: no date fits", missing_date(day, pattern.months)));
    }
    let full = [(pattern.seconds, 60), (pattern.minutes, 60), (pattern.hours, 24)];
    let interval = fields.iter().zip(full).any(|(text, (set, all))| text.contains('*') || set.len() == all);
    Ok(Compiled { pattern, fixed: !interval, fields: joined.into() })
}

/// What to write where the months that are named have no such day.
fn missing_date(days: &str, months: Set) -> String {
    let length = |month: u32| match month {
        2 => 29,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let longest = months.values().map(length).max().unwrap_or(31);
    let number = |item: &str| item.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok();
    match days.split(',').filter_map(number).min().filter(|first| *first > longest) {
        Some(first) => format!("the months named have no day {first}: write at most {longest}, or L for the last day"),
        None => "check the days against the months".to_owned(),
    }
}

/// croner takes the second name of a range for the Sunday after the week, so that `SUN-SUN` would be every day.
fn sunday_alone(list: &str) -> String {
    let (both, list) = list.strip_prefix('+').map_or(("", list), |list| ("+", list));
    let alone = |item: &str| match item.split_once("-SUN") {
        Some((from, rest)) if from == "SUN" || from.parse() == Ok(0) => format!("0-0{rest}"),
        _ => item.to_owned(),
    };
    both.to_owned() + &list.split(',').map(alone).collect::<Vec<_>>().join(",")
}

/// Whether croner reads a field when all others are `*`.
fn reads_alone(text: &str, index: usize) -> bool {
    let mut fields = ["*"; 6];
    if let Some(field) = fields.get_mut(index) {
        *field = text;
    }
    CronParser::new().parse(&fields.join(" ")).is_ok()
}

impl Field {
    fn fault(&self, text: &str) -> SyntaxError {
        SyntaxError::new(format!("{} {text:?} cannot be read", self.name), self.hint(text))
    }

    /// Whether nothing in a field is empty, or a name that belongs elsewhere; croner would read both.
    fn knows_words_of(&self, text: &str, index: usize) -> bool {
        // Only the day of the week may begin with '+': both days must fit.
        let list = if index == 5 { text.strip_prefix('+').unwrap_or(text) } else { text };
        let known = |item: &str| item.split(['-', '/', '#', '*', '?']).all(|word| self.knows(word, index));
        list.split(',').all(|item| !item.is_empty() && known(item))
    }

    /// Whether a word is a number, one of the field's names, or one of the forms with `L` and `W`.
    fn knows(&self, word: &str, index: usize) -> bool {
        let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        match index {
            3 => word == "L" || word == "LW" || number(word.strip_suffix('W').unwrap_or(word)),
            5 => {
                let day = word.strip_suffix('L').unwrap_or(word);
                number(day) || self.names.contains(&day)
            }
            _ => number(word) || self.names.contains(&word),
        }
    }

    /// The value of a number or a name.
    pub(super) fn number(&self, text: &str) -> Option<u32> {
        let named = self.names.iter().position(|name| *name == text).and_then(|index| u32::try_from(index).ok());
        named.map(|index| index + self.least).or_else(|| text.parse().ok())
    }

    /// What to write instead, by the mistakes that people make.
    fn hint(&self, list: &str) -> String {
        let Self { name, least, most, names } = self;
        let number = |text: &str| text.parse::<u32>().ok();
        for item in list.split(',') {
            if let Some((from, step)) = item.split_once('/') {
                match (from.is_empty(), number(from)) {
                    (true, _) => return format!("write */{step}"),
                    (_, Some(from)) => return format!("write {from}-{most}/{step}"),
                    _ => {}
                }
            }
            if let Some((Some(from), Some(to))) = item.split_once('-').map(|(a, b)| (number(a), number(b)))
                && (*least..=*most).contains(&to)
                && to < from
                && from <= *most
            {
                return format!("a range goes upwards: write {from}-{most},{least}-{to}");
            }
            if item.starts_with('H') {
                return "H is not known here: write a number; `jitter` spreads jobs over time".to_owned();
            }
            if item.is_empty() {
                return "take out the comma that nothing follows or precedes".to_owned();
            }
        }
        let named = match names {
            [first, .., last] => format!(", or {first} to {last} by three letters"),
            _ => String::new(),
        };
        format!("the {name} goes from {least} to {most}{named}; a list is 1,2, a range 1-5, a step */5")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fault(text: &str) -> (String, String) {
        let fault = compile(text).unwrap_err();
        (fault.message, fault.hint.unwrap_or_default())
    }

    #[test]
    fn five_fields_six_with_seconds_and_the_short_forms_are_read() {
        for text in [
            "0 * * * *",
            "*/10 * * * * *",
            "@hourly",
            "@DAILY",
            "@midnight",
            "@weekly",
            "@monthly",
            "@yearly",
            "@annually",
            "  15 9-17 * jan-mar Mon-Fri ",
            "0 0 LW * *",
            "0 0 15W * *",
            "0 0 L * *",
            "0 0 * * 5L",
            "0 0 * * FRI#L",
            "0 0 * * MON#1,THU#3",
            "0 0 ? * SUN",
            "0 0 13 * +FRI",
            "0 22-23,0-5 * * 7",
            "0 0 29 2 *",
        ] {
            assert!(compile(text).is_ok(), "{text}: {:?}", compile(text));
        }
    }

    #[test]
    fn what_is_no_schedule_is_refused_with_what_to_write_instead() {
        for (text, message, hint) in [
            ("", "empty", "5 fields"),
            ("   ", "empty", "5 fields"),
            ("* * *", "has 3 fields", "5 fields"),
            ("0 0 0 1 1 * 2027", "years are not supported", "leave the year out"),
            ("0 0 0 1 1 * 2027 x", "has 8 fields", "5 fields"),
            ("@reboot", "no slot", "systemd unit"),
            ("@every 5m", "@every", "*/5 * * * *"),
            ("@fortnightly", "short form", "@weekly"),
            ("5/15 * * * *", "minute \"5/15\"", "write 5-59/15"),
            ("/15 * * * *", "minute \"/15\"", "write */15"),
            ("0 3/6 * * *", "hour \"3/6\"", "write 3-23/6"),
            ("H * * * *", "minute \"H\"", "jitter"),
            ("H/15 * * * *", "minute \"H/15\"", "jitter"),
            ("60 * * * *", "minute \"60\"", "0 to 59"),
            ("0 24 * * *", "hour \"24\"", "0 to 23"),
            ("0 0 0 * *", "day-of-month \"0\"", "1 to 31"),
            ("0 0 1 13 *", "month \"13\"", "JAN to DEC"),
            ("0 0 * * 8", "day-of-week \"8\"", "SUN to SAT"),
            ("0 0 * * MONDAY", "day-of-week", "three letters"),
            ("MON * * * *", "minute \"MON\"", "0 to 59"),
            ("0 0 * * JAN", "day-of-week \"JAN\"", "SUN to SAT"),
            ("0 22-5 * * *", "hour \"22-5\"", "22-23,0-5"),
            ("0,,5 * * * *", "minute \"0,,5\"", "comma"),
            (", * * * *", "minute \",\"", "comma"),
            ("*/0 * * * *", "minute \"*/0\"", "0 to 59"),
            ("-1 * * * *", "minute \"-1\"", "0 to 59"),
            ("0 0 31 2 *", "never fires", "no day 31: write at most 29, or L"),
            ("0 0 30,31 FEB *", "never fires", "no day 30: write at most 29"),
            ("0 0 31 4,6,9,11 *", "never fires", "no day 31: write at most 30"),
            ("0 * * * *\n", "'\\n'", "5 fields"),
            ("０ * * * *", "'０'", "5 fields"),
        ] {
            let (told, told_hint) = fault(text);
            assert!(told.contains(message), "{text:?}: {told}");
            assert!(told_hint.contains(hint), "{text:?}: {told_hint}");
        }
        assert!(fault(&"1,".repeat(200)).0.contains("longer than 200"));
    }

    #[test]
    fn an_expression_is_fixed_when_no_star_is_in_its_time_of_day() {
        for (text, fixed) in [
            ("30 2 * * *", true),
            ("0,30 2,14 * * MON", true),
            ("0 9-17 * * *", true),
            ("0 * * * *", false),
            ("*/30 2 * * *", false),
            ("0 */2 * * *", false),
            ("0 0-23 * * *", false),
            ("* 0 2 * * *", false),
        ] {
            assert_eq!(compile(text).unwrap().fixed, fixed, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[0-9*,/?#LWH+@A-Za-z \t\\-\u{0}-\u{ff}]{0,220}") {
            let _ = compile(&text);
        }

        #[test]
        fn nothing_that_looks_like_a_schedule_makes_it_panic(
            fields in prop::collection::vec("[0-9*,/?#LWH+MONJA\\-]{1,9}", 5..=6)
        ) {
            let _ = compile(&fields.join(" "));
        }
    }
}
