//! `jobs.toml` from what was read: what all jobs share goes to `[defaults]`, everything else stays in its order.
//! And what that is written from: jobs, everything that is told between them, and text as TOML strings and keys.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write;

use crate::slot::Period;
use crate::text::is_harmful;
use crate::zone::Zone;

/// What cron sets where a crontab sets none.
pub(super) const CRONS_PATH: &str = "/usr/bin:/bin";
/// The same; the account's own shell is not asked.
pub(super) const CRONS_SHELL: &str = "/bin/sh";

const HEAD: &str = "\
# Written by `cronward import crontab`. Lines that begin with \"# import:\" say what differs from cron: read them,
# then try the file with `cronward check` and `cronward next`.
#
# import: for every job below:
#   - One node of the cluster runs the job; cron ran it on every machine. Leave in each crontab what every machine must do for
#     itself (log rotation, updates).
#   - Nothing is mailed: the store keeps the output of each attempt (cronward logs), and failures are in the log.
#   - The job starts in its user's home with HOME, LOGNAME, SHELL, USER and PATH as cron sets them; what else the daemon has in its
#     environment is there, too.
#   - A missed start (the node was down) is made up for until the slot ends: set start_deadline if a late start is harmful.
";

/// What is the same for all jobs.
struct SharedSettings {
    zone: (Zone, ZoneSource),
    env: BTreeMap<String, String>,
    user: Option<String>,
}

/// The text of the file. `zone` is that of jobs which nothing else is said of.
pub(super) fn write(items: &[Item], zone: (Zone, ZoneSource), user: Option<&str>) -> String {
    let jobs: Vec<&Job> =
        items.iter().filter_map(|item| if let Item::Job(job) = item { Some(&**job) } else { None }).collect();
    let shared = shared(&jobs, zone, user);
    let mut text = format!("{HEAD}\n{}", defaults(&shared, &jobs));
    let mut block = String::new();
    for item in items {
        match item {
            Item::File(file) => block = format!("# --- {}\n\n", comment(file)),
            Item::Comment(line) => line_of(&mut block, &comment(line)),
            Item::Gap => {}
            Item::Note(place, told) | Item::Doubt(place, told) => {
                line_of(&mut block, &format!("# import: {}: {}", comment(&place.to_string()), comment(told)));
            }
            Item::Refused(refused) => {
                let (place, why) = (comment(&refused.place.to_string()), comment(&refused.why));
                line_of(&mut block, &format!("# import: {place} is not imported: {why}"));
                line_of(&mut block, &format!("# {}", comment(&refused.source)));
            }
            Item::Job(job) => block.push_str(&section(job, &shared)),
        }
        if !matches!(item, Item::Comment(_)) && !block.is_empty() {
            text.push_str(&format!("\n{}\n", std::mem::take(&mut block).trim_end()));
        }
    }
    if !block.is_empty() {
        text.push_str(&format!("\n{block}"));
    }
    text
}

fn line_of(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn shared(jobs: &[&Job], zone: (Zone, ZoneSource), user: Option<&str>) -> SharedSettings {
    let Some((first, rest)) = jobs.split_first() else {
        return SharedSettings { zone, env: BTreeMap::new(), user: user.map(str::to_owned) };
    };
    let everywhere = |name: &String, value: &String| rest.iter().all(|job| job.env.get(name) == Some(value));
    let env = first.env.iter().filter(|(name, value)| everywhere(name, value));
    let own = first.user.clone().filter(|_| rest.iter().all(|job| job.user == first.user));
    SharedSettings {
        zone: if rest.iter().all(|job| job.zone == first.zone) { first.zone.clone() } else { zone },
        env: env.map(|(name, value)| (name.clone(), value.clone())).collect(),
        user: own.or_else(|| user.map(str::to_owned)),
    }
}

fn defaults(shared: &SharedSettings, jobs: &[&Job]) -> String {
    let (zone, source) = &shared.zone;
    let whose = match source {
        ZoneSource::Flag => "as --timezone says",
        ZoneSource::CronTz => "CRON_TZ",
        ZoneSource::Tz => "TZ, see the comment there",
        ZoneSource::Machine => "this machine's zone: cron reads schedules in the zone of its machine",
    };
    let mut text = String::from("[defaults]\n");
    line_of(&mut text, &format!("timezone = {}    # import: {whose}", string(zone.name())));
    text.push_str(
        "max_attempts = 1            # import: as in cron: no retry after a failure. Write 3 if the command can be repeated\n\
         timeout = \"none\"            # import: as in cron: a command that hangs is never stopped. Better set one for each job\n\
         concurrency = \"allow\"       # import: as in cron: a run does not wait for an older one. \"forbid\" makes it wait\n",
    );
    if let Some(user) = &shared.user {
        line_of(&mut text, &format!("user = {}    # import: needs a daemon that runs as root", string(&literal(user))));
    }
    let cwd = shared.env.get("HOME").map_or_else(
        || "cwd = \"~\"                   # import: the home of the job's user, where cron starts commands".to_owned(),
        |home| format!("cwd = {}    # import: HOME, where cron starts commands", string(&folder(home))),
    );
    line_of(&mut text, &cwd);
    if !shared.env.is_empty() {
        text.push_str("\n[defaults.env]\n");
    }
    for (name, value) in &shared.env {
        let told = match (&**name, &**value) {
            ("PATH", CRONS_PATH) => "    # import: cron's default, because the crontab sets none",
            _ => "",
        };
        line_of(&mut text, &format!("{} = {}{told}", key(name), string(&literal(value))));
    }
    if jobs.is_empty() {
        text.push_str("\n# import: there are no jobs\n");
    }
    text
}

/// `HOME` as a folder. Cron expands no tilde.
fn folder(home: &str) -> String {
    literal(&if home.starts_with('~') { format!("./{home}") } else { home.to_owned() })
}

fn section(job: &Job, shared: &SharedSettings) -> String {
    let mut text = format!("# {}: {}\n", comment(&job.place.to_string()), comment(&job.source));
    for note in &job.notes {
        line_of(&mut text, &format!("# import: {}", comment(note)));
    }
    let mut put = |name: &str, value: &str| {
        let _ = writeln!(text, "{name} = {value}");
    };
    put("schedule", &string(&job.schedule));
    if let Some(period) = job.period {
        put(
            "slot",
            &format!("{}    # import: the schedule can fire more than once per hour", string(&period.to_string())),
        );
    }
    if job.zone.0 != shared.zone.0 {
        put("timezone", &string(job.zone.0.name()));
    }
    if let Some(user) = job.user.as_ref().filter(|user| shared.user.as_ref() != Some(user)) {
        put("user", &string(&literal(user)));
    }
    if let Some(group) = &job.group {
        put("group", &string(&literal(group)));
    }
    if let Some(minutes) = job.jitter {
        put("jitter", &string(&format!("{minutes}m")));
    }
    let own: Vec<String> = job
        .env
        .iter()
        .filter(|(name, value)| shared.env.get(*name) != Some(value))
        .map(|(name, value)| format!("{} = {}", key(name), string(&literal(value)).replace("'''\n", "'''")))
        .collect();
    if !own.is_empty() {
        put("env", &format!("{{ {} }}", own.join(", ")));
    }
    if let Some(home) = job.env.get("HOME").filter(|home| shared.env.get("HOME") != Some(home)) {
        put("cwd", &string(&folder(home)));
    }
    put("command", &job.command);
    // The header stands between what is told and what is said.
    let at = text.find("schedule = ").unwrap_or(0);
    text.insert_str(at, &format!("[jobs.{}]\n", key(&job.name)));
    text
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceLine {
    pub(super) file: String,
    pub(super) line: usize,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// One thing of a crontab, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A file begins.
    File(String),
    /// A comment, with its `#`.
    Comment(String),
    /// What was above does not belong to what comes.
    Gap,
    /// Something that changes what the following lines mean, or that is left out for a reason.
    Note(SourceLine, String),
    /// Something that was guessed: told on stderr as well.
    Doubt(SourceLine, String),
    /// A line that is not imported.
    Refused(Refused),
    Job(Box<Job>),
}

/// A line that is not imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) place: SourceLine,
    /// The line itself.
    pub(super) source: String,
    pub(super) why: String,
    /// Whether it should be looked at: what is right in cron and has no counterpart is only told.
    pub(super) wrong: bool,
}

/// Who says which zone a schedule is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZoneSource {
    /// `--timezone`.
    Flag,
    /// `CRON_TZ` in the crontab.
    CronTz,
    /// `TZ` in the crontab.
    Tz,
    /// The machine on which the import runs.
    Machine,
}

/// An entry as a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) name: String,
    pub(super) place: SourceLine,
    /// The line itself.
    pub(super) source: String,
    pub(super) schedule: String,
    pub(super) period: Option<Period>,
    pub(super) zone: (Zone, ZoneSource),
    pub(super) user: Option<String>,
    pub(super) group: Option<String>,
    pub(super) env: BTreeMap<String, String>,
    /// The value of `command`, as it is written.
    pub(super) command: String,
    /// Minutes.
    pub(super) jitter: Option<u32>,
    pub(super) notes: Vec<String>,
}

/// A string value, in the form that is read most easily.
pub(super) fn string(text: &str) -> String {
    let plain = |c: char| !is_harmful(c);
    if text.contains('\n')
        && !text.contains("'''")
        && text.ends_with('\n')
        && text.chars().all(|c| c == '\n' || plain(c))
    {
        return format!("'''\n{text}'''");
    }
    if text.contains(['"', '\\']) && !text.contains('\'') && text.chars().all(plain) {
        return format!("'{text}'");
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if is_harmful(c) => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A list of strings on one line.
pub(super) fn list(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| string(word)).collect();
    format!("[{}]", words.join(", "))
}

/// A key: bare where it may be.
pub(super) fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { string(name) }
}

/// A text in which `jobs.toml` would look for variables.
fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

/// A comment's text: one line, with nothing in it that TOML forbids there or that moves a cursor.
pub(super) fn comment(text: &str) -> String {
    text.chars().map(|c| if is_harmful(c) { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    #[test]
    fn a_string_is_written_as_it_is_read_most_easily() {
        for (text, written) in [
            ("plain", "\"plain\""),
            ("say \"it\"", "'say \"it\"'"),
            ("it's \"it\"", r#""it's \"it\"""#),
            ("a\nb\n", "'''\na\nb\n'''"),
            ("\r", "\"\\u000D\""),
        ] {
            assert_eq!(string(text), written);
        }
    }

    proptest! {
        #[test]
        fn any_text_comes_back_from_its_string(text in "[a'\"\\\\\n\t$\u{0}-\u{9f}é\u{61c}\u{200e}\u{2028}\u{202e}\u{2066}]{0,12}") {
            let document = format!("x = {}\n# {}\n", string(&text), comment(&text));
            let read: toml::Table = toml::from_str(&document).unwrap();
            prop_assert_eq!(read["x"].as_str(), Some(&*text));
        }
    }
}
