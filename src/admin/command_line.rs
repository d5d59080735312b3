//! Command lines that are told to a person, to be pasted: they name the same file, store and namespace as the one that was typed. They
//! never show a secret: where the url has one, it has to be put in again.

use std::borrow::Cow;
use std::fmt::{Display, Write};

use crate::job::Namespace;
use crate::observe::view::NoStart;
use crate::store::{JobOrigin, redact, secrets};

/// What such a line names.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandLine {
    /// The file that was named.
    pub(crate) config: Option<String>,
    /// The store that was named. May hold secrets.
    pub(crate) store: Option<String>,
    /// The namespace that was named.
    pub(crate) namespace: Option<Namespace>,
}

/// In place of a file that only the reader knows.
const SOME_FILE: &str = "FILE";

impl CommandLine {
    /// A command for the store of these arguments.
    pub(crate) fn command(&self, words: impl Display) -> String {
        self.with(words, self.config.as_deref().map(Cow::Borrowed))
    }

    /// One that takes a job's command from a file. `known` is whether the file of these arguments has it; otherwise it is left
    /// to the reader to name one that has.
    pub(crate) fn command_of_file(&self, words: impl Display, known: bool) -> String {
        if known { self.command(words) } else { self.with(words, Some(Cow::Borrowed(SOME_FILE))) }
    }

    fn with(&self, words: impl Display, file: Option<Cow<'_, str>>) -> String {
        let mut line = format!("cronward {words}");
        let store = self.store.as_deref().map(shown);
        let namespace = self.namespace.as_ref().map(|namespace| Cow::Borrowed(namespace.as_str()));
        for (flag, value) in [("--config", file), ("--store", store), ("--namespace", namespace)] {
            if let Some(value) = value {
                // Writing to a string cannot fail.
                let _ = write!(line, " {flag} {}", quoted(&value));
            }
        }
        line
    }
}

/// A url as it may be read by others.
fn shown(url: &str) -> Cow<'_, str> {
    if secrets(url).is_empty() { Cow::Borrowed(url) } else { Cow::Owned(redact(url)) }
}

/// One word of a shell's line.
pub(crate) fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

/// Why no node starts a slot by itself, as the middle of a sentence.
pub(crate) const fn no_start(why: NoStart) -> &'static str {
    match why {
        NoStart::Disabled => "the job is disabled in the file",
        NoStart::Orphaned => "no live node has the job in its file",
        NoStart::NoNode => "no live node that has the job in its file has the labels of its only_on",
        NoStart::NoLiveNode => "no node is alive",
        NoStart::NotDue => "its scheduled times lie before the cluster first knew the job",
        NoStart::TooLate => "the start deadline has passed",
    }
}

/// Who starts a job that no daemon plans, as the middle of a sentence; none for a job of a file.
pub(crate) const fn starter(origin: JobOrigin) -> Option<&'static str> {
    match origin {
        JobOrigin::File => None,
        JobOrigin::Crontab => Some("its crontab starts it"),
        JobOrigin::Service => Some("its service calls for it"),
    }
}
