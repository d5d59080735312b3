//! The lines of a crontab, as vixie cron tells them apart: blank, comment, `name = value`, or an entry; and an entry taken apart: its
//! schedule, whom it runs as, its command. Judges no command.
//!
//! Whether a crontab has a user in each of its entries, as `/etc/crontab` and the files of `/etc/cron.d` have, is judged by its place,
//! else by its entries; the command line may say it instead.

use std::collections::BTreeSet;
use std::path::Path;

use crate::cli::import::fields::{When, fields};
use crate::slot::Period;
use crate::zone::Zone;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CrontabLine {
    /// Nothing but blanks.
    Blank,
    /// From its `#` on.
    Comment(String),
    /// `name = value`, without its quotes.
    Variable(String, String),
    /// Everything else, without the blanks before it.
    Entry(String),
    /// Bytes that are no text, as far as they can be shown.
    NotText(String),
}

/// A line with its number, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Numbered {
    pub(super) number: usize,
    pub(super) line: CrontabLine,
    /// It ended with a carriage return, which was taken off.
    pub(super) carriage_return: bool,
}

/// Splits a crontab into its lines.
pub(super) fn lines(bytes: &[u8]) -> Vec<Numbered> {
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if body.is_empty() {
        return Vec::new();
    }
    let numbered = |(index, line): (usize, &[u8])| {
        let (line, carriage_return) = line.strip_suffix(b"\r").map_or((line, false), |line| (line, true));
        Numbered { number: index + 1, line: kind_of(line), carriage_return }
    };
    body.split(|byte| *byte == b'\n').enumerate().map(numbered).collect()
}

fn kind_of(bytes: &[u8]) -> CrontabLine {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => text.trim_start_matches([' ', '\t']),
        _ => return CrontabLine::NotText(String::from_utf8_lossy(bytes).trim().to_owned()),
    };
    if text.trim_end().is_empty() {
        return CrontabLine::Blank;
    }
    if text.starts_with('#') {
        return CrontabLine::Comment(text.trim_end().to_owned());
    }
    match variable(text) {
        Some((name, value)) => CrontabLine::Variable(name, value),
        None => CrontabLine::Entry(text.to_owned()),
    }
}

/// `name = value`. Either may be in quotes, which keep blanks; a value without quotes ends with its last non-blank. As in
/// cron a name without quotes has no blank, nothing follows a closing quote, and a value that is not there is none.
fn variable(text: &str) -> Option<(String, String)> {
    let (name, rest) = match quoted(text) {
        Some((name, rest)) => (name, rest),
        None => text.split_at(text.find(|c: char| c.is_ascii_whitespace() || c == '=')?),
    };
    if name.is_empty() || name.contains('=') {
        return None;
    }
    let value = rest.trim_start().strip_prefix('=')?.trim_start();
    match quoted(value) {
        Some((value, rest)) => rest.trim().is_empty().then(|| (name.to_owned(), value.to_owned())),
        None if value.starts_with(['"', '\'']) => None,
        None => (!value.is_empty()).then(|| (name.to_owned(), value.trim_end().to_owned())),
    }
}

/// What is between the quotes that a text begins with, and what follows them.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    text.get(1..)?.split_once(quote)
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CrontabEntry {
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
pub(super) fn read(text: &str, system: bool, zone: &Zone) -> Result<CrontabEntry, Refusal> {
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
    Ok(CrontabEntry { when, user, group, command: command.to_owned() })
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

fn when(texts: &[&str], zone: &Zone) -> Result<When, Refusal> {
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

/// Accounts that any system may have, also the one that a crontab comes from.
const USUAL: [&str; 16] = [
    "root", "daemon", "nobody", "www-data", "mail", "man", "backup", "list", "news", "games", "postgres", "mysql",
    "apache", "nginx", "munin", "logcheck",
];

/// What entries begin with where they name no user: programs that a machine may lack and a shell's own words. What the
/// machine has in `/usr/bin` is no user either.
const PROGRAMS: [&str; 47] = [
    "bash", "case", "cd", "chronic", "command", "cronward", "curl", "docker", "echo", "env", "eval", "exec", "export",
    "find", "flock", "for", "if", "ionice", "java", "kubectl", "nice", "node", "perl", "pg_dump", "php", "psql",
    "python", "python3", "read", "restic", "rsync", "ruby", "set", "sh", "sleep", "source", "test", "timeout", "trap",
    "type", "ulimit", "umask", "unset", "until", "wait", "wget", "while",
];

/// Names of accounts.
pub(super) struct Accounts(BTreeSet<String>);

/// What follows the schedule of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lead {
    /// The line of the entry, from 1.
    pub(super) line: usize,
    /// The sixth word: the user, in a system crontab.
    pub(super) word: String,
    /// Whether more comes after it: a user alone has no command.
    pub(super) followed: bool,
}

/// Whether a crontab has a user in each entry, and which words made that a guess.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Judged<'l> {
    pub(super) system: bool,
    /// Words that may be users and that no account of this machine is called; each with its first line.
    pub(super) doubted: Vec<&'l Lead>,
}

impl Accounts {
    /// The usual ones, and those of a `passwd` file.
    pub(super) fn of(passwd: &str) -> Self {
        let listed = passwd.lines().filter_map(|line| line.split(':').next()).filter(|name| !name.is_empty());
        Self(listed.chain(USUAL).map(str::to_owned).collect())
    }

    /// Judges by the words that follow the schedules. A system crontab is one in which each may be a user; a crontab of
    /// another machine has users that this one lacks, and they are told from commands by their look: a name, no program, and
    /// a command behind it. That is a guess, so the words are answered, to be told of. Where one entry surely begins with a
    /// command, nothing is guessed.
    pub(super) fn judge<'l>(&self, leads: &'l [Lead], is_program: impl Fn(&str) -> bool) -> Judged<'l> {
        let known = |lead: &Lead| lead.followed && self.0.contains(account(&lead.word));
        let likely = |lead: &Lead| {
            let name = account(&lead.word);
            lead.followed && is_name(name) && !PROGRAMS.contains(&name) && !is_program(name)
        };
        let system = !leads.is_empty() && leads.iter().all(|lead| known(lead) || likely(lead));
        let sure = leads.iter().any(|lead| !lead.followed || !is_name(account(&lead.word)));
        // In a system's crontab the users that this machine lacks; in a user's own one whatever may be a user.
        let guessed = |lead: &Lead| if system { !known(lead) } else { !sure && (known(lead) || likely(lead)) };
        let mut told = BTreeSet::new();
        let doubted = leads.iter().filter(|lead| guessed(lead) && told.insert(&lead.word)).collect();
        Judged { system, doubted }
    }
}

/// `user`, `user:group` or `user/class`.
fn account(word: &str) -> &str {
    word.split([':', '/']).next().unwrap_or("")
}

/// Whether useradd(8) would take the name.
fn is_name(text: &str) -> bool {
    let first = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    first && text.len() <= 32 && text.strip_suffix('$').unwrap_or(text).chars().all(allowed)
}

/// Whether a path is that of a system crontab.
pub(super) fn is_systems(path: &Path) -> bool {
    let parent = path.parent().and_then(Path::file_name);
    let crontab = path.file_name().is_some_and(|name| name == "crontab");
    parent.is_some_and(|folder| folder == "cron.d" || (folder == "etc" && crontab))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_told_from_an_entry_as_cron_does() {
        let set = |name: &str, value: &str| CrontabLine::Variable(name.to_owned(), value.to_owned());
        for (text, line) in [
            ("", CrontabLine::Blank),
            (" \t", CrontabLine::Blank),
            ("  # a=b", CrontabLine::Comment("# a=b".to_owned())),
            ("A=b", set("A", "b")),
            ("  A = b c  ", set("A", "b c")),
            ("A=\" b \"  ", set("A", " b ")),
            ("MAILTO=\"\"", set("MAILTO", "")),
            ("\"A B\"='c'", set("A B", "c")),
            ("A=b'c'", set("A", "b'c'")),
            ("A=\"b\" c", CrontabLine::Entry("A=\"b\" c".to_owned())),
            ("A=", CrontabLine::Entry("A=".to_owned())),
            ("A=\"b", CrontabLine::Entry("A=\"b".to_owned())),
            ("A B=c", CrontabLine::Entry("A B=c".to_owned())),
            ("* * * * * A=b c", CrontabLine::Entry("* * * * * A=b c".to_owned())),
        ] {
            assert_eq!(kind_of(text.as_bytes()), line, "{text:?}");
        }
    }

    #[test]
    fn lines_are_counted_from_one_and_a_foreign_line_end_is_told() {
        let read = lines(b"# a\r\n\n1 2\n");
        assert_eq!(
            read.iter().map(|line| (line.number, line.carriage_return)).collect::<Vec<_>>(),
            [(1, true), (2, false), (3, false)]
        );
        assert_eq!(lines(b"\xff\n")[0].line, CrontabLine::NotText("\u{fffd}".to_owned()));
        assert_eq!(lines(b""), []);
    }

    #[test]
    fn an_entry_has_a_schedule_a_user_where_there_is_one_and_the_rest_of_the_line() {
        let own = read("0\t3  * * * a  b ", false, &Zone::UTC).unwrap();
        assert_eq!((&*own.when.schedule, own.user, &*own.command), ("0 3 * * *", None, "a  b "));
        let system = read("@daily www-data:adm\ta b", true, &Zone::UTC).unwrap();
        assert_eq!(
            (system.user.as_deref(), system.group.as_deref(), &*system.command),
            (Some("www-data"), Some("adm"), "a b")
        );
        assert_eq!(read("-*/5 * * * * root a", true, &Zone::UTC).unwrap().when.notes.len(), 1);
    }

    #[test]
    fn what_is_no_entry_says_why() {
        let why = |text: &str, system| match read(text, system, &Zone::UTC).unwrap_err() {
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

    #[test]
    fn a_system_crontab_is_known_by_its_place() {
        for (path, system) in [
            ("/etc/crontab", true),
            ("/etc/cron.d/php", true),
            ("backup/etc/crontab", true),
            ("/var/spool/cron/crontabs/root", false),
            ("crontab", false),
        ] {
            assert_eq!(is_systems(Path::new(path)), system, "{path}");
        }
    }

    fn lead(word: &str) -> Lead {
        Lead { line: 1, word: word.to_owned(), followed: true }
    }

    fn judged(words: &[&str]) -> (bool, Vec<String>) {
        let leads: Vec<Lead> = words.iter().map(|word| lead(word)).collect();
        let accounts = Accounts::of("app:x:1000:1000::/srv/app:/bin/sh\n");
        let judged = accounts.judge(&leads, |name| name == "logrotate");
        (judged.system, judged.doubted.iter().map(|lead| lead.word.clone()).collect())
    }

    #[test]
    fn a_crontab_whose_entries_all_begin_with_an_account_is_a_system_s() {
        assert_eq!(judged(&["root", "app", "app:www-data"]), (true, vec![]));
        assert_eq!(judged(&["root", "/usr/bin/true"]), (false, vec![]));
        assert_eq!(judged(&[]), (false, vec![]));
    }

    #[test]
    fn an_account_of_another_machine_is_a_guess_that_is_told() {
        let doubted = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(judged(&["deploy", "root", "deploy"]), (true, doubted(&["deploy"])));
        assert_eq!(judged(&["deploy", "php", "root"]), (false, doubted(&["deploy", "root"])));
        assert_eq!(judged(&["deploy", "/usr/bin/true"]), (false, vec![]), "one that is surely a command decides");
        for program in ["php", "cd", "logrotate", "./run", "[", "A=b", "MyTool", "$HOME/bin/x", "test"] {
            assert_eq!(judged(&[program]), (false, vec![]), "{program}");
        }
        let alone = [Lead { followed: false, ..lead("deploy") }];
        let judged = Accounts::of("").judge(&alone, |_| false);
        assert!(!judged.system && judged.doubted.is_empty(), "a user alone has no command");
    }
}
