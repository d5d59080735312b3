//! One crontab, line by line: what each setting does to the entries below it, and what becomes of each entry.

use std::collections::BTreeMap;

use crate::cli::import::document::{CRONS_PATH, CRONS_SHELL, Item, Job, Refused, SourceLine, ZoneSource};
use crate::cli::import::entry::{self, CrontabLine, Lead, Numbered, Refusal, lines};
use crate::cli::import::line::{Names, commands};
use crate::cli::import::line::{command, split};
use crate::config::LONGEST_WORD;
use crate::text::message;
use crate::zone::Zone;

/// The most bytes of settings that the jobs of one crontab have together: each job has those above it, so that the two
/// multiply. A thousand jobs with ten settings each have a megabyte.
const MOST_SETTINGS: usize = 2 << 20;

/// What a setting takes besides its name and its value.
const BESIDES: usize = 64;

/// The longest text in which words of the crontab are told; the line itself stands in its place.
const LONGEST: usize = 600;

/// The most that the import adds to a line: what gives a command its input.
const ADDED: usize = 1_024;

/// A value in a sentence that is not to be cut at its end.
fn brief(value: &str) -> String {
    message(value, 200)
}

/// Cron's own settings of its mails.
const MAIL: [&str; 4] = ["MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING"];

/// Programs that keep two runs of one machine apart.
const GUARDS: [&str; 7] = ["flock", "cronlock", "lockrun", "setlock", "solo", "run-one", "with-lock-ex"];

/// A crontab and how it is read.
pub(super) struct Source<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a [u8],
    /// With a user in each entry.
    pub(super) system: bool,
    /// The zone of entries that no `CRON_TZ` stands above.
    pub(super) zone: (Zone, ZoneSource),
}

/// What follows the schedule of each entry.
pub(super) fn leads(text: &[u8]) -> Vec<Lead> {
    let lead = |numbered: Numbered| {
        let CrontabLine::Entry(text) = numbered.line else { return None };
        let (word, followed) = entry::sixth_word(&text)?;
        Some(Lead { line: numbered.number, word: word.to_owned(), followed })
    };
    lines(text).into_iter().filter_map(lead).collect()
}

/// Reads a crontab.
pub(super) fn read(source: &Source<'_>, names: &mut Names) -> Vec<Item> {
    let mut table = Table {
        source,
        items: vec![Item::File(source.file.to_owned())],
        variables: BTreeMap::new(),
        zone: Ok(source.zone.clone()),
        jitter: None,
        above: 0,
        settings: 0,
    };
    for line in lines(source.text) {
        table.take(line, names);
    }
    if !source.text.is_empty() && !source.text.ends_with(b"\n") {
        let last = table.place(source.text.split(|byte| *byte == b'\n').count());
        table
            .items
            .push(Item::Note(last, "cron ignores a crontab whose last line does not end; it is imported".to_owned()));
    }
    table.items
}

struct Table<'a> {
    source: &'a Source<'a>,
    items: Vec<Item>,
    variables: BTreeMap<String, String>,
    /// Of the entries that follow; else why it is not known.
    zone: Result<(Zone, ZoneSource), String>,
    /// Minutes.
    jitter: Option<u32>,
    /// Bytes of settings that stand above.
    above: usize,
    /// Bytes of settings that the jobs have so far.
    settings: usize,
}

fn too_long(what: &str) -> String {
    format!("its {what} is too long: Linux starts no command with more than {LONGEST_WORD} bytes in one piece")
}

impl Table<'_> {
    fn place(&self, line: usize) -> SourceLine {
        SourceLine { file: self.source.file.to_owned(), line }
    }

    fn take(&mut self, numbered: Numbered, names: &mut Names) {
        let place = self.place(numbered.number);
        match numbered.line {
            CrontabLine::Blank => self.items.push(Item::Gap),
            CrontabLine::Comment(text) => self.items.push(Item::Comment(text)),
            CrontabLine::NotText(shown) => self.refuse(place, shown, "is not UTF-8".to_owned(), true),
            CrontabLine::Variable(name, value) if name.len() + value.len() >= LONGEST_WORD => {
                self.refuse(place, brief(&name), too_long("variable"), true);
            }
            CrontabLine::Variable(name, value) => self.set(place, name, value),
            CrontabLine::Entry(text) if text.len() + ADDED >= LONGEST_WORD => {
                self.refuse(place, brief(&text), too_long("command"), true);
            }
            CrontabLine::Entry(text) => match self.job(&place, &text, numbered.carriage_return, names) {
                Ok(job) => self.items.push(Item::Job(Box::new(job))),
                Err(Refusal::NoCounterpart(why)) => self.refuse(place, text, why.to_owned(), false),
                Err(Refusal::Unreadable(why)) => self.refuse(place, text, why, true),
            },
        }
    }

    fn refuse(&mut self, place: SourceLine, source: String, why: String, wrong: bool) {
        let why = message(&why, LONGEST);
        self.items.push(Item::Refused(Refused { place, source, why, wrong }));
    }

    fn note(&mut self, place: SourceLine, text: impl Into<String>) {
        self.items.push(Item::Note(place, message(&text.into(), LONGEST)));
    }

    /// A setting holds for the entries below it.
    fn set(&mut self, place: SourceLine, name: String, value: String) {
        if MAIL.contains(&&*name) {
            let told =
                "nothing is mailed here: the output stays with the attempt (cronward logs), failures are in the log";
            return self.note(place, format!("{name}={} is left out: {told}", brief(&value)));
        }
        match &*name {
            "CRON_TZ" => self.zone_from(place, &value),
            "LOGNAME" => {
                self.note(place, format!("LOGNAME={} is left out: cron does not let it be set", brief(&value)));
            }
            "RANDOM_DELAY" => self.delay(place, &value),
            _ if !nameable(&name) => {
                let why =
                    "names no variable that can be set here: a letter or _, then letters, digits and _, not CRONWARD_";
                self.refuse(place, format!("{name}={value}"), why.to_owned(), true);
            }
            _ => self.set_variable(place, name, value),
        }
    }

    fn set_variable(&mut self, place: SourceLine, name: String, value: String) {
        let from_tz = name == "TZ" && matches!(self.zone, Ok((_, ZoneSource::Machine | ZoneSource::Tz)));
        let zone = value.trim_start_matches(':').parse().ok();
        if let Some(zone) = zone.filter(|_| from_tz) {
            self.zone = Ok((zone, ZoneSource::Tz));
            self.note(place, format!(
                "TZ={value} is taken for the schedules below, too; vixie cron gives it to commands only and reads schedules \
                 in the machine's zone: if that was meant, import with --timezone"
            ));
        } else if value.contains('$') || value.starts_with('~') {
            self.note(place, format!("cron expands nothing in {name}={}: it is kept as it is written", brief(&value)));
        } else {
            self.items.push(Item::Gap);
        }
        let added = name.len() + value.len() + BESIDES;
        let replaced = self.variables.get(&name).map_or(0, |old| name.len() + old.len() + BESIDES);
        self.above = (self.above + added).saturating_sub(replaced);
        self.variables.insert(name, value);
    }

    fn zone_from(&mut self, place: SourceLine, value: &str) {
        match value.trim_start_matches(':').parse() {
            Ok(zone) => {
                self.zone = Ok((zone, ZoneSource::CronTz));
                self.note(place, format!(
                    "CRON_TZ={value} is the timezone of the entries below, as in cronie; Debian's cron does not know it"
                ));
            }
            Err(_) => {
                let why = format!("CRON_TZ={value} is no IANA time zone");
                self.zone = Err(format!("{why}, so when it runs is not known"));
                self.refuse(place, format!("CRON_TZ={value}"), why, true);
            }
        }
    }

    fn delay(&mut self, place: SourceLine, value: &str) {
        match value.parse::<u32>() {
            Ok(minutes) if minutes <= 1_440 => {
                self.jitter = Some(minutes).filter(|minutes| *minutes > 0);
                self.note(place, format!(
                    "RANDOM_DELAY={value} is the jitter of the jobs below: fixed for each job, drawn anew each time in cron"
                ));
            }
            _ => self.refuse(
                place,
                format!("RANDOM_DELAY={value}"),
                "is no number of minutes up to 1440".to_owned(),
                true,
            ),
        }
    }

    fn job(
        &mut self,
        place: &SourceLine,
        text: &str,
        carriage_return: bool,
        names: &mut Names,
    ) -> Result<Job, Refusal> {
        let zone = self.zone.clone().map_err(Refusal::Unreadable)?;
        let entry = entry::read(text, self.source.system, &zone.0)?;
        let shell = self.variables.get("SHELL").map_or("/bin/sh", String::as_str);
        let (command, told) = command(&entry.command, shell).map_err(Refusal::Unreadable)?;
        if self.settings + self.above > MOST_SETTINGS {
            let why = "each job has the settings above it, and together that is more than 2 MiB: split the file";
            return Err(Refusal::Unreadable(why.to_owned()));
        }
        self.settings += self.above;
        let mut env = self.variables.clone();
        env.entry("PATH".to_owned()).or_insert_with(|| CRONS_PATH.to_owned());
        env.entry("SHELL".to_owned()).or_insert_with(|| CRONS_SHELL.to_owned());
        let mut notes = entry.when.notes;
        notes.extend(told);
        notes.extend(guard(&entry.command));
        notes.extend(redis_lock(&entry.command));
        if carriage_return {
            notes.push(
                "the line ends as on Windows; cron makes that end a part of the command, and it is left out here"
                    .to_owned(),
            );
        }
        Ok(Job {
            name: names.take(&split(&entry.command).line),
            place: place.clone(),
            source: text.to_owned(),
            schedule: entry.when.schedule,
            period: entry.when.period,
            zone,
            user: entry.user,
            group: entry.group,
            env,
            command,
            jitter: self.jitter,
            notes,
        })
    }
}

/// Whether `env` takes the name.
fn nameable(name: &str) -> bool {
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    first && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') && !name.starts_with("CRONWARD_")
}

/// What to say of a command that guards itself already.
fn guard(command: &str) -> Option<String> {
    let all = commands(command);
    let program = |word: &str| word.rsplit('/').next().unwrap_or("").to_owned();
    let words: Vec<String> = all.iter().flatten().map(|word| program(word)).collect();
    if words.windows(2).any(|pair| matches!(pair, [one, two] if one == "cronward" && two == "exec")) {
        return Some(
            "the daemon guards this job itself: take `cronward exec … --` out of the command. Until then it runs under the \
             daemon's lease where it names the same job and slot, and is guarded twice where it does not"
                .to_owned(),
        );
    }
    let guard = words.iter().find(|word| GUARDS.contains(&&***word))?;
    Some(format!(
        "{guard} keeps two runs of one machine apart; concurrency = \"forbid\" does that here, for all machines at once"
    ))
}

/// What to say of a lock in Redis that the command takes itself: `redis-cli SET key value NX EX …`, wherever it stands in the
/// line.
fn redis_lock(command: &str) -> Option<String> {
    let segments = command.split([';', '|', '&', '\n']);
    let key = segments.into_iter().find_map(|segment| {
        let mut words = segment.split([' ', '\t', '"', '\'', '(', ')', '`', '$']).filter(|word| !word.is_empty());
        words.find(|word| word.ends_with("redis-cli") || word.ends_with("valkey-cli"))?;
        let is_set = |word: &&str| word.eq_ignore_ascii_case("set") || word.eq_ignore_ascii_case("setnx");
        let verb = words.find(is_set)?;
        let key = words.next()?;
        let alone = verb.len() == "setnx".len() || words.any(|word| word.eq_ignore_ascii_case("nx"));
        alone.then(|| brief(key))
    })?;
    Some(format!(
        "redis-cli sets the lock {key} for one machine at a time: the lease of the job does that here, is renewed while the \
         command runs, and is released at its end, so take the lock out. While other machines still take it, `cronward exec \
         --key {key}` in their crontabs respects both"
    ))
}
