//! A typed reader over the parsed tables: each method answers a value, or tells what is wrong with it and answers none.
//! Nothing stops at the first error.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::context::Context;
use crate::config::value::{Entry, nearest};

/// Keys that people bring from other tools, and what they are called here.
const FOREIGN: [(&str, &str); 17] = [
    ("cron", "schedule"),
    ("cmd", "command"),
    ("exec", "command"),
    ("run", "command"),
    ("script", "command"),
    ("tz", "timezone"),
    ("retries", "max_attempts"),
    ("max_retries", "max_attempts"),
    ("ttl", "lease_ttl"),
    ("backoff", "retry_backoff"),
    ("workdir", "cwd"),
    ("working_directory", "cwd"),
    ("environment", "env"),
    ("concurrency_policy", "concurrency"),
    ("KillMode", "kill_mode"),
    ("lock", "locks"),
    ("mutex", "locks"),
];

/// Keys that had another name before: it is still read, and `check` mentions the one of today.
const RENAMED: [(&str, &str); 1] = [("period", "slot")];

/// The table of the jobs, which people write as a list, or in the singular.
const JOBS: &str = "jobs";
const JOB_FORM: &str = "write each job as [jobs.NAME]";

/// A day more than a year, so that "365d" and "366d" both fit.
pub(super) const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// One table of the file, or an absent one: then every key is absent too.
pub(super) struct Section<'a> {
    pub(super) ctx: &'a Context<'a>,
    /// As the file writes it, like `[store]`; empty for the top level.
    title: String,
    table: Option<&'a DeTable<'a>>,
    /// Where it is.
    pub(super) span: Range<usize>,
}

impl<'a> Section<'a> {
    /// The whole file.
    pub(super) fn root(ctx: &'a Context<'a>, table: &'a DeTable<'a>) -> Self {
        Self { ctx, title: String::new(), table: Some(table), span: 0..0 }
    }

    /// A table of this one. What is there and is no table is told.
    pub(super) fn child(&self, key: &str) -> Section<'a> {
        let entry = self.entry(key);
        let hint = if key == JOBS { JOB_FORM.to_owned() } else { format!("write it as {}", self.title_of(key)) };
        let table = entry.as_ref().and_then(|entry| entry.table(&hint));
        let span = entry.map_or(0..0, |entry| entry.span());
        Section { ctx: self.ctx, title: self.title_of(key), table, span }
    }

    /// As the file writes a table of this one, like `[http.auth]`.
    fn title_of(&self, key: &str) -> String {
        match self.title.trim_matches(['[', ']']) {
            "" => format!("[{key}]"),
            parent => format!("[{parent}.{key}]"),
        }
    }

    /// Whether the file has it.
    pub(super) const fn is_there(&self) -> bool {
        self.table.is_some()
    }

    /// The tables of this one, each with its key. What is no table is told.
    pub(super) fn children(&self) -> impl Iterator<Item = (&'a Spanned<std::borrow::Cow<'a, str>>, Section<'a>)> {
        let (ctx, parent) = (self.ctx, self.title.trim_matches(['[', ']']).to_owned());
        self.table.into_iter().flatten().filter_map(move |(key, value)| {
            let title = format!("[{parent}.{}]", key.get_ref());
            let table = Entry::new(ctx, key.get_ref().to_string(), value).table(&format!("write it as {title}"))?;
            Some((key, Section { ctx, title, table: Some(table), span: key.span() }))
        })
    }

    /// Tells every key that is not one of `known`. `elsewhere` has the sections that other keys belong to.
    pub(super) fn only(&self, known: &[&str], elsewhere: &[(&str, &[&str])]) {
        for (key, _) in self.table.into_iter().flatten() {
            let name = key.get_ref().as_ref();
            if known.contains(&name) || self.ctx.is_full() {
                continue;
            }
            match RENAMED.iter().find(|(old, new)| *old == name && known.contains(new)) {
                Some((_, new)) => self.renamed(key, new),
                None => self.unknown(key, known, elsewhere),
            }
        }
    }

    /// An old name is as good as the new one, unless both are there.
    fn renamed(&self, key: &Spanned<std::borrow::Cow<'_, str>>, new: &str) {
        let old = key.get_ref();
        if self.table.is_some_and(|table| table.contains_key(new)) {
            let message = format!("{old} is the old name of {new}, which is here too");
            return self.ctx.error("renamed-key", key.span(), message, format!("remove {old}"));
        }
        let message = format!("{old} is the old name of {new}");
        self.ctx.note("renamed-key", key.span(), message, format!("write {new} = … instead"));
    }

    fn unknown(&self, key: &Spanned<std::borrow::Cow<'_, str>>, known: &[&str], elsewhere: &[(&str, &[&str])]) {
        let name = key.get_ref().as_ref();
        let home = elsewhere.iter().find(|(_, keys)| keys.contains(&name)).map(|(title, _)| *title);
        let hint = match (meant(name, known), home) {
            (_, Some(home)) => format!("{name} belongs in {home}"),
            (Some(JOBS), None) => JOB_FORM.to_owned(),
            (Some(near), None) => format!("did you mean {near}?"),
            (None, None) => format!("known here: {}", known.join(", ")),
        };
        let place = if self.title.is_empty() { String::new() } else { format!(" in {}", self.title) };
        let shown: String = name.chars().take(60).collect();
        self.ctx.error("unknown-key", key.span(), format!("unknown key {shown}{place}"), hint);
    }

    /// Whether the table has a key that nobody knows and that is near to this one: then it is not missing.
    pub(super) fn is_misspelled(&self, key: &str) -> bool {
        self.table.into_iter().flatten().any(|(name, _)| meant(name.get_ref(), &[key]).is_some())
    }

    /// The value of a key.
    pub(super) fn entry(&self, key: &str) -> Option<Entry<'a>> {
        let table = self.table?;
        let old = RENAMED.iter().find(|(_, new)| *new == key).map(|(old, _)| *old);
        let (name, value) = [Some(key), old].into_iter().flatten().find_map(|name| Some((name, table.get(name)?)))?;
        Some(Entry::new(self.ctx, name.to_owned(), value))
    }

    /// Where the value of each key is.
    pub(super) fn places(&self) -> BTreeMap<String, Range<usize>> {
        let name = |key: &str| RENAMED.iter().find(|(old, _)| *old == key).map_or(key, |(_, new)| *new).to_owned();
        self.table.into_iter().flatten().map(|(key, value)| (name(key.get_ref()), value.span())).collect()
    }

    /// A text that may refer to variables.
    pub(super) fn text(&self, key: &str, example: &str) -> Option<String> {
        self.entry(key)?.text(example)
    }

    /// `true` or `false`.
    pub(super) fn boolean(&self, key: &str) -> Option<bool> {
        let entry = self.entry(key)?;
        match entry.value() {
            DeValue::Boolean(value) => Some(*value),
            _ => entry.wrong_type("true or false", "true"),
        }
    }

    /// A duration within bounds.
    pub(super) fn duration(&self, key: &str, bounds: RangeInclusive<Duration>) -> Option<Duration> {
        self.entry(key)?.duration(bounds)
    }

    /// One word that stands for none, or a duration within bounds.
    pub(super) fn word_or_duration(
        &self,
        key: &str,
        word: &str,
        bounds: RangeInclusive<Duration>,
    ) -> Option<Option<Duration>> {
        let entry = self.entry(key)?;
        let is_text = entry.value().as_str().is_some();
        if is_text && entry.text(word)? == word { Some(None) } else { entry.duration(bounds).map(Some) }
    }

    /// One word out of several.
    pub(super) fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Option<T> {
        self.entry(key)?.word(words)
    }

    /// A list of texts.
    pub(super) fn texts(&self, key: &str, example: &str) -> Option<Vec<String>> {
        let entry = self.entry(key)?;
        let items = entry.items("a list of strings", example)?;
        items.into_iter().map(|item| item.filled_text("\"…\"")).collect()
    }

    /// A table of texts.
    pub(super) fn text_map(&self, key: &str, example: &str) -> Option<BTreeMap<String, String>> {
        let entry = self.entry(key)?;
        let fields = entry.fields("a table of strings", example)?;
        let read = |(name, field): (&str, Entry<'_>)| Some((name.to_owned(), field.text("\"…\"")?));
        // Every field is read before the first that is wrong decides.
        let fields: Vec<Option<(String, String)>> =
            fields.into_iter().map(|(name, _, field)| read((name, field))).collect();
        fields.into_iter().collect()
    }
}

/// Overwrites a default with what was read, if anything was.
pub(super) fn put<T>(target: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *target = value;
    }
}

/// The same for what has no default.
pub(super) fn put_some<T>(target: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *target = value;
    }
}

/// The known key that was meant by another one.
fn meant<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let foreign = FOREIGN.iter().find(|(other, _)| *other == name).map(|(_, own)| *own);
    foreign
        .and_then(|own| known.iter().copied().find(|key| *key == own))
        .or_else(|| nearest(name, known.iter().copied()))
}
