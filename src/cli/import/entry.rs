//! One entry of a crontab, taken apart: its schedule, whom it runs as, its command. Judges no command.

use chrono_tz::Tz;

use crate::cli::import::fields::{When, fields};
use crate::slot::Period;

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) when: When,
    /// In a system crontab.
    pub(super) user: Option<String>,
    /// With `user:group`.
    pub(super) group: Option<String>,
    /// As it is written, with its `%`.
    pub(super) command: String,
}

/// Why an entry is not imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is right, and there is no such thing here.
    NoCounterpart(&'static str),
    /// It cannot be read.
    Unreadable(String),
}

const REBOOT: &str = "@reboot has no time, so it has no slot: start the command from a systemd unit, or give it a time";

/// What stands before the user or the command: a short form, or five fields.
fn schedule(text: &str) -> Option<(Vec<&str>, &str)> {
    let count = if text.starts_with('@') { 1 } else { 5 };
    let (mut fields, mut rest) = (Vec::new(), text);
    for _ in 0..count {
        rest = rest.trim_start_matches([' ', '\t']);
        let end = rest.find([' ', '\t']).unwrap_or(rest.len());
        let (field, after) = rest.split_at(end);
        if field.is_empty() {
            return None;
        }
        fields.push(field);
        rest = after;
    }
    Some((fields, rest.trim_start_matches([' ', '\t'])))
}

/// The word that follows the schedule, if there is one, and whether there is more behind it.
pub(super) fn sixth_word(text: &str) -> Option<(&str, bool)> {
    let (_, rest) = schedule(text)?;
    let (word, more) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
    (!word.is_empty()).then_some((word, !more.trim().is_empty()))
}

/// Reads an entry, with a user in it or without.
pub(super) fn read(text: &str, system: bool, zone: Tz) -> Result<Entry, Refusal> {
    let unreadable = |why: String| Refusal::Unreadable(why);
    let (unlogged, text) = match text.strip_prefix('-') {
        Some(rest) if rest.starts_with(|c: char| c == '*' || c.is_ascii_digit()) => (true, rest),
        _ => (false, text),
    };
    let (fields_read, rest) =
        schedule(text).ok_or_else(|| unreadable("it is neither a setting nor has it five fields".to_owned()))?;
    let mut when = when(&fields_read, zone)?;
    if unlogged {
        when.notes.push("the - before the minute kept cron from logging it".to_owned());
    }
    let (account, command) = if system { user(rest).map_err(unreadable)? } else { (None, rest) };
    let (user, group) = match account.map(|account| account.split_once(':').unwrap_or((account, ""))) {
        Some((user, group)) => (Some(user.to_owned()), Some(group.to_owned()).filter(|group| !group.is_empty())),
        None => (None, None),
    };
    if command.trim().is_empty() {
        return Err(unreadable("it has no command".to_owned()));
    }
    Ok(Entry { when, user, group, command: command.to_owned() })
}

fn user(rest: &str) -> Result<(Option<&str>, &str), String> {
    let end = rest.find([' ', '\t']).unwrap_or(rest.len());
    let (user, command) = rest.split_at(end);
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '$' | '@' | ':');
    if user.is_empty() || !user.chars().all(allowed) || user.starts_with(['-', ':']) {
        return Err(format!("names no user before its command: {user:?}; is it a user's own crontab? then --personal"));
    }
    Ok((Some(user), command.trim_start_matches([' ', '\t'])))
}

fn when(texts: &[&str], zone: Tz) -> Result<When, Refusal> {
    if let Ok(texts) = <[&str; 5]>::try_from(texts) {
        return fields(texts, zone).map_err(Refusal::Unreadable);
    }
    let short = texts.first().copied().unwrap_or("");
    let (schedule, period) = match short {
        "@yearly" | "@annually" | "@monthly" | "@weekly" | "@daily" | "@midnight" | "@hourly" => (short, None),
        "@every_minute" => ("* * * * *", Some(Period::Minute)),
        "@reboot" => return Err(Refusal::NoCounterpart(REBOOT)),
        _ => return Err(Refusal::Unreadable(format!("{short} is no short form of a schedule"))),
    };
    Ok(When { schedule: schedule.to_owned(), period, notes: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_a_schedule_a_user_where_there_is_one_and_the_rest_of_the_line() {
        let own = read("0\t3  * * * a  b ", false, Tz::UTC).unwrap();
        assert_eq!((&*own.when.schedule, own.user, &*own.command), ("0 3 * * *", None, "a  b "));
        let system = read("@daily www-data:adm\ta b", true, Tz::UTC).unwrap();
        assert_eq!(
            (system.user.as_deref(), system.group.as_deref(), &*system.command),
            (Some("www-data"), Some("adm"), "a b")
        );
        assert_eq!(read("-*/5 * * * * root a", true, Tz::UTC).unwrap().when.notes.len(), 1);
    }

    #[test]
    fn what_is_no_entry_says_why() {
        let why = |text: &str, system| match read(text, system, Tz::UTC).unwrap_err() {
            Refusal::NoCounterpart(why) => why.to_owned(),
            Refusal::Unreadable(why) => why,
        };
        for (text, system, part) in [
            ("@reboot a", false, "systemd unit"),
            ("@Daily a", false, "no short form"),
            ("* * * *", false, "five fields"),
            ("* * * * *", false, "no command"),
            ("* * * * * root", true, "no command"),
            ("* * * * * /bin/a b", true, "--personal"),
            ("61 * * * * a", false, "minute \"61\""),
        ] {
            assert!(why(text, system).contains(part), "{text}: {}", why(text, system));
        }
    }
}
