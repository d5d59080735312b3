//! The five fields of an entry: which values each names by the rules of vixie cron, and how to write that here.
//!
//! Stricter than some crons: what they read each in their own way (`5/15`, `22-2`, `0~30`) is refused, because nobody can
//! tell what was meant.

use crate::schedule::Schedule;
use crate::slot::Period;
use crate::zone::Zone;

/// When an entry runs, in the words of `jobs.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct When {
    pub(super) schedule: String,
    /// None for the default, the hour.
    pub(super) period: Option<Period>,
    /// What is not as it was.
    pub(super) notes: Vec<String>,
}

struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const FIELDS: [Field; 5] = [
    Field { name: "minute", least: 0, most: 59, names: &[] },
    Field { name: "hour", least: 0, most: 23, names: &[] },
    Field { name: "day of month", least: 1, most: 31, names: &[] },
    Field { name: "month", least: 1, most: 12, names: &MONTHS },
    Field { name: "day of week", least: 0, most: 7, names: &DAYS },
];

/// The values of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Values {
    /// One bit per value.
    bits: u64,
    /// Whether it begins with `*`: cron judges by the first character alone.
    star: bool,
    /// As it is written here.
    text: String,
}

/// Reads the five fields.
pub(super) fn fields(texts: [&str; 5], zone: &Zone) -> Result<When, String> {
    let [_, _, day_written, _, weekday_written] = texts;
    let read: Vec<Values> =
        FIELDS.iter().zip(texts).map(|(field, text)| field.read(text)).collect::<Result<_, String>>()?;
    let [minute, hour, day, month, weekday] = read.as_slice() else { return Err("has not five fields".to_owned()) };
    let mut notes = Vec::new();
    // Cron wants both days to fit where one of them begins with a star, here only where one is nothing but a star.
    let both = day.star || weekday.star;
    let weekday_text = if both && day.text != "*" && weekday.text != "*" {
        notes.push(format!(
            "one of the two days, {day_written} and {weekday_written}, begins with a star, so cron wants both to fit: the + says so here",
        ));
        format!("+{}", weekday.text)
    } else {
        weekday.text.clone()
    };
    let schedule = [&*minute.text, &*hour.text, &*day.text, &*month.text, &*weekday_text].join(" ");
    let follows_here = every(minute, 60) || every(hour, 24);
    notes.extend(
        clock_changes(minute.star || hour.star, follows_here).filter(|_| *zone != Zone::UTC).map(str::to_owned),
    );
    Schedule::parse(&schedule, zone.clone()).map_err(|error| error.message)?;
    let gap_joins = *zone != Zone::UTC && !follows_here && meets_in_a_gap(minute, hour);
    Ok(When { schedule, period: period(minute, gap_joins), notes })
}

/// More than one tick in an hour would be retries of one another.
fn period(minute: &Values, gap_joins: bool) -> Option<Period> {
    match minute.bits.count_ones() {
        0 | 1 => gap_joins.then_some(Period::Tick),
        60 => Some(Period::Minute),
        _ => Some(Period::Tick),
    }
}

/// Whether a clock that goes forward can bring two fixed times into one hour: 02:30 comes at 03:00 then, and 03:30 after it.
/// Clocks go forward in the small hours.
const fn meets_in_a_gap(minute: &Values, hour: &Values) -> bool {
    const SMALL_HOURS: u64 = 0b1_1111;
    minute.bits != 1 && hour.bits & (hour.bits >> 1) & SMALL_HOURS != 0
}

/// Whether a field makes an entry follow the clock here: with a star anywhere, or with every value.
fn every(values: &Values, all: u32) -> bool {
    values.text.contains('*') || values.bits.count_ones() == all
}

/// Cron takes an entry with a star before minute or hour for an interval, which follows the clock when it changes; all others
/// are fixed times.
const fn clock_changes(follows_there: bool, follows_here: bool) -> Option<&'static str> {
    match (follows_there, follows_here) {
        (false, true) => Some(
            "when the clock goes back, cron runs this once in the hour that comes twice, and when it goes forward it makes up \
             for what is left out; here it follows the clock",
        ),
        (true, false) => Some(
            "when the clock goes back, cron runs this both times in the hour that comes twice, and when it goes forward it \
             leaves out what is left out; here it runs once",
        ),
        _ => None,
    }
}

impl Field {
    fn read(&self, text: &str) -> Result<Values, String> {
        let mut bits = 0;
        for item in text.split(',') {
            bits |= self.item(item).map_err(|why| format!("{} {text:?} {why}", self.name))?;
        }
        if self.names.len() == 7 && bits & (1 << 7) != 0 {
            bits = (bits | 1) & !(1 << 7);
        }
        let values = Values { bits, star: text.starts_with('*'), text: String::new() };
        Ok(Values { text: self.write(text, &values), ..values })
    }

    /// The values of one item of a list.
    fn item(&self, item: &str) -> Result<u64, String> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (item, None),
        };
        let (from, to) = match (range, range.split_once('-')) {
            ("*", _) => (self.least, self.most),
            (_, Some((from, to))) => (self.number(from)?, self.number(to)?),
            (_, None) if step.is_some() => {
                return Err(format!(
                    "has a step without a range, which crons read differently: write {range}-{}{}",
                    self.most,
                    item.get(range.len()..).unwrap_or("")
                ));
            }
            (one, None) => (self.number(one)?, self.number(one)?),
        };
        if from > to {
            let least = self.least;
            return Err(format!("goes down, which crons read differently: write {from}-{},{least}-{to}", self.most));
        }
        let step = match step.map(str::parse::<usize>) {
            None => 1,
            Some(Ok(step)) if step > 0 => step,
            Some(_) => return Err("has a step that is no number above 0".to_owned()),
        };
        Ok((from..=to).step_by(step).fold(0, |bits, value| bits | 1 << value))
    }

    fn number(&self, text: &str) -> Result<u32, String> {
        let lower = text.to_ascii_lowercase();
        if let Some(index) = self.names.iter().position(|name| *name == lower) {
            return Ok(u32::try_from(index).unwrap_or(0) + u32::from(self.names.len() == 12));
        }
        if text.contains('~') {
            return Err("is random: write the number that you want".to_owned());
        }
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| digits && (self.least..=self.most).contains(number));
        number.ok_or_else(|| format!("is not understood: it goes from {} to {}", self.least, self.most))
    }

    /// How many values there are; both Sundays are one.
    const fn all(&self) -> u32 {
        if self.names.len() == 7 { 7 } else { self.most - self.least + 1 }
    }

    /// As it was written where that means the same here; otherwise its values.
    fn write(&self, text: &str, values: &Values) -> String {
        if values.star && values.bits.count_ones() == self.all() {
            return "*".to_owned();
        }
        // The day of week ends with a second Sunday in cron, which moves its steps; and a step may be too long here.
        let steps = text.contains('/') && (self.names.len() == 7 || !self.steps_fit(text));
        let second_sunday = self.names.len() == 7 && text.contains('7');
        if steps || second_sunday || text.contains('*') && text.contains(',') {
            list(values.bits)
        } else {
            text.to_owned()
        }
    }

    fn steps_fit(&self, text: &str) -> bool {
        let steps = text.split(',').filter_map(|item| item.split_once('/'));
        let range = |range: &str| match range.split_once('-').map(|(from, to)| (self.number(from), self.number(to))) {
            Some((Ok(from), Ok(to))) => to - from,
            _ => self.most - self.least,
        };
        steps.into_iter().all(|(span, step)| step.parse().is_ok_and(|step: u32| step <= range(span).max(1)))
    }
}

/// The values one by one, ranges where they follow each other.
fn list(bits: u64) -> String {
    let mut items: Vec<(u32, u32)> = Vec::new();
    for value in (0..64).filter(|value| bits & (1 << value) != 0) {
        match items.last_mut() {
            Some((_, to)) if *to + 1 == value => *to = value,
            _ => items.push((value, value)),
        }
    }
    let shown = items.iter().map(|(from, to)| match to - from {
        0 => from.to_string(),
        1 => format!("{from},{to}"),
        _ => format!("{from}-{to}"),
    });
    shown.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn when(text: &str) -> Result<When, String> {
        let parts: Vec<&str> = text.split_whitespace().collect();
        fields(parts.try_into().unwrap(), &"Europe/Berlin".parse().unwrap())
    }

    fn schedule(text: &str) -> String {
        when(text).unwrap().schedule
    }

    #[test]
    fn what_means_the_same_is_kept_as_it_is_written() {
        for text in ["17 * * * *", "*/5 9-17 * * 1-5", "0 0 1,15 * Mon", "00 4 * JAN-mar sun", "1-59/2 * * * *"] {
            assert_eq!(schedule(text), text);
        }
    }

    #[test]
    fn what_would_mean_something_else_is_written_out() {
        for (text, written) in [
            ("0 0 * * 7", "0 0 * * 0"),
            ("0 0 * * 5-7", "0 0 * * 0,5,6"),
            ("0 0 * * 1-7", "0 0 * * 0-6"),
            ("0 0 * * */2", "0 0 * * 0,2,4,6"),
            ("*/90 * * * *", "0 * * * *"),
            ("0-59/90 * * * *", "0 * * * *"),
            ("*/1 */1 */1 */1 */1", "* * * * *"),
            ("*,5 * * * *", "* * * * *"),
            ("0 0 */2 * 1", "0 0 */2 * +1"),
            ("0 0 13 * */5", "0 0 13 * +0,5"),
            ("0 0 13 * 5", "0 0 13 * 5"),
        ] {
            assert_eq!(schedule(text), written, "{text}");
        }
    }

    #[test]
    fn an_entry_that_runs_more_than_once_an_hour_gets_a_period_that_fits() {
        for (text, period) in [
            ("0 * * * *", None),
            ("30 2 * * *", None),
            ("*/15 * * * *", Some(Period::Tick)),
            ("0,30 2 * * *", Some(Period::Tick)),
            ("* * * * *", Some(Period::Minute)),
            ("* 9-17 * * *", Some(Period::Minute)),
            ("0 1,2,3 * * *", None),
            ("30 9-17 * * *", None),
            // On the day that 02:30 does not exist it comes at 03:00, in the hour of 03:30.
            ("30 1,2,3 * * *", Some(Period::Tick)),
        ] {
            assert_eq!(when(text).unwrap().period, period, "{text}");
        }
    }

    #[test]
    fn what_crons_read_each_in_their_own_way_is_refused_with_what_to_write() {
        for (text, why) in [
            ("5/15 * * * *", "write 5-59/15"),
            ("0 22-2 * * *", "write 22-23,0-2"),
            ("0~30 * * * *", "random"),
            ("60 * * * *", "from 0 to 59"),
            ("1,,2 * * * *", "not understood"),
            ("0 0 L * *", "not understood"),
            ("0 0 ? * *", "not understood"),
            ("*/0 * * * *", "above 0"),
            ("*/5/2 * * * *", "above 0"),
            ("0 0 * * monday", "not understood"),
            ("0 0 31 2 *", "never fires"),
        ] {
            let told = when(text).unwrap_err();
            assert!(told.contains(why), "{text}: {told}");
        }
    }

    #[test]
    fn an_hour_that_comes_twice_is_told_where_it_is_counted_differently() {
        assert_eq!(when("0 0-23 * * *").unwrap().notes.len(), 1);
        assert_eq!(when("30 */24 * * *").unwrap().notes.len(), 1);
        for same in ["0 * * * *", "0 2 * * *", "*/5 2 * * *"] {
            assert_eq!(when(same).unwrap().notes, Vec::<String>::new(), "{same}");
        }
    }
}
