//! What other schedulers read in an expression and cronward does not: a time zone (Go's cron, Kubernetes), and Quartz's numbers of the
//! weekdays (XXL-JOB, Spring's older tables). Each is refused with its translation, since it would run at another time.

use super::fields::{DAYS, SyntaxError};

/// A time zone within the expression, before it or after it.
pub(super) fn zone_within(expression: &str) -> Result<(), SyntaxError> {
    let words: Vec<&str> = expression.split_ascii_whitespace().collect();
    let before = words.split_first().and_then(|(first, rest)| Some((zone_variable(first)?, rest)));
    let after = words.split_last().filter(|(last, rest)| !rest.is_empty() && is_zone(last));
    let Some((zone, rest)) = before.or(after.map(|(last, rest)| (*last, rest))) else { return Ok(()) };
    let (zone, rest) = (zone.trim_matches(['"', '\'']), rest.join(" "));
    Err(SyntaxError::new(
        format!("holds the time zone {zone:?}, which has a key of its own"),
        format!("write schedule = {rest:?} and timezone = {zone:?}; on a command line --timezone {zone}"),
    ))
}

/// The value of `CRON_TZ=…` or `TZ=…`.
fn zone_variable(word: &str) -> Option<&str> {
    let (name, zone) = word.split_once('=')?;
    ["CRON_TZ", "TZ"].iter().any(|known| name.eq_ignore_ascii_case(known)).then_some(zone)
}

/// `Europe/Berlin`, not `MON/2`.
fn is_zone(word: &str) -> bool {
    let begins_with_letter = |part: &str| part.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_place =
        word.split_once('/').is_some_and(|(area, city)| begins_with_letter(area) && begins_with_letter(city));
    is_place || ["UTC", "GMT"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// The days of the week as numbers beside a `?`, which only Quartz and its kin write: there 1 is Sunday. Quartz has no 0, so an
/// expression with one is meant as cron's.
pub(super) fn quartz_weekday(day: &str, weekday: &str) -> Result<(), SyntaxError> {
    let names = weekday.split(',').map(named).collect::<Vec<_>>().join(",");
    let items = || weekday.split(',').map(|item| item.split(['/', '#']).next().unwrap_or(item));
    let has_zero = items().flat_map(|item| item.split('-')).any(|number| number == "0");
    if day != "?" || names == weekday || has_zero {
        return Ok(());
    }
    Err(SyntaxError::new(
        format!(
            "day-of-week {weekday:?} beside day-of-month \"?\" is Quartz's notation, whose numbers are other days than cron's"
        ),
        format!("write names: Quartz counts 1 = Sunday, so {weekday} is {names} there"),
    ))
}

/// An item of a list with names in the place of Quartz's numbers.
fn named(item: &str) -> String {
    let end = item.find(['/', '#']).unwrap_or(item.len());
    let (days, rest) = item.split_at_checked(end).unwrap_or((item, ""));
    let name = |day: &str| {
        let (number, last) = day.strip_suffix('L').map_or((day, ""), |number| (number, "#L"));
        let index = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        index.and_then(|index| DAYS.get(index)).map_or_else(|| day.to_owned(), |name| format!("{name}{last}"))
    };
    days.split('-').map(name).collect::<Vec<_>>().join("-") + rest
}

#[cfg(test)]
mod tests {
    use crate::schedule::syntax::compile;

    fn fault(text: &str) -> (String, String) {
        let fault = compile(text).unwrap_err();
        (fault.message, fault.hint.unwrap_or_default())
    }

    #[test]
    fn weekday_numbers_in_quartz_notation_are_refused_with_their_names() {
        for (weekday, names) in [
            ("2", "MON"),
            ("1", "SUN"),
            ("7", "SAT"),
            ("2-6", "MON-FRI"),
            ("6L", "FRI#L"),
            ("2#1", "MON#1"),
            ("1,7", "SUN,SAT"),
            ("2-6/2", "MON-FRI/2"),
            ("MON,4", "MON,WED"),
        ] {
            for fields in [format!("0 0 2 ? * {weekday}"), format!("0 2 ? * {weekday}")] {
                let (message, hint) = fault(&fields);
                assert!(
                    message.starts_with(&format!("day-of-week {weekday:?} beside day-of-month \"?\"")),
                    "{message}"
                );
                assert_eq!(hint, format!("write names: Quartz counts 1 = Sunday, so {weekday} is {names} there"));
            }
        }
    }

    #[test]
    fn names_stars_and_the_numbers_of_cron_are_read_as_before() {
        for text in [
            "0 0 2 ? * MON",
            "0 0 2 ? * MON-FRI",
            "0 0 2 ? * FRI#L",
            "0 0 2 ? * MON#1",
            "0 0 2 ? * *",
            "0 0 2 ? * */2",
            "0 0 2 ? * ?",
            "0 2 ? * 0",
            "0 2 ? * 0,6",
            "0 2 ? * 0-4",
            "0 2 * * 2",
            "0 2 1 * 2-6",
            "0 2 1-7 * 1",
        ] {
            assert!(compile(text).is_ok(), "{text}: {:?}", compile(text));
        }
    }

    #[test]
    fn a_time_zone_in_the_expression_leads_to_its_key() {
        for (text, zone, rest) in [
            ("CRON_TZ=Europe/Berlin 0 9 * * *", "Europe/Berlin", "0 9 * * *"),
            ("TZ=America/New_York 0 9 * * *", "America/New_York", "0 9 * * *"),
            ("tz=\"UTC\" @daily", "UTC", "@daily"),
            ("0 9 * * * Asia/Shanghai", "Asia/Shanghai", "0 9 * * *"),
            ("0 0 9 * * * America/Argentina/Salta", "America/Argentina/Salta", "0 0 9 * * *"),
            ("0 9 * * * UTC", "UTC", "0 9 * * *"),
            ("@daily Europe/Berlin", "Europe/Berlin", "@daily"),
        ] {
            let (message, hint) = fault(text);
            assert_eq!(message, format!("holds the time zone {zone:?}, which has a key of its own"));
            let expected =
                format!("write schedule = {rest:?} and timezone = {zone:?}; on a command line --timezone {zone}");
            assert_eq!(hint, expected, "{text}");
        }
        assert!(fault("0 0 * * MON/2").0.contains("day-of-week"), "a step is no zone");
    }
}
