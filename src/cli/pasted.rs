//! Command lines that are told to a person, to be pasted: they name the same file, store and namespace as the one that was
//! typed. Never shows a secret: where the url has one, it has to be put in again.

use std::borrow::Cow;
use std::fmt::{Display, Write};

use crate::cli::store_args::StoreArgs;
use crate::store::{JobOrigin, redact, secrets};

/// In place of a file that only the reader knows.
const SOME_FILE: &str = "FILE";

impl StoreArgs {
    /// A command for the store of these arguments.
    pub(crate) fn command(&self, words: impl Display) -> String {
        self.with(words, self.config.as_deref().map(|path| path.to_string_lossy()))
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

/// Who starts a job that no daemon plans, as the middle of a sentence; none for a job of a file.
pub(crate) const fn starter(origin: JobOrigin) -> Option<&'static str> {
    match origin {
        JobOrigin::File => None,
        JobOrigin::Crontab => Some("its crontab starts it"),
        JobOrigin::Service => Some("its service calls for it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Namespace;

    fn args(config: Option<&str>, store: Option<&str>, namespace: Option<&str>) -> StoreArgs {
        StoreArgs {
            config: config.map(Into::into),
            store: store.map(str::to_owned),
            namespace: namespace.map(|name| Namespace::new(name).unwrap()),
        }
    }

    #[test]
    fn what_was_given_is_given_again_and_what_was_not_is_not() {
        assert_eq!(args(None, None, None).command("reset a"), "cronward reset a");
        assert_eq!(
            args(Some("/etc/my jobs.toml"), Some("redis://h:6379/0"), Some("prod")).command("reset a"),
            "cronward reset a --config '/etc/my jobs.toml' --store redis://h:6379/0 --namespace prod"
        );
        assert_eq!(args(Some("it's"), None, None).command("jobs"), r"cronward jobs --config 'it'\''s'");
    }

    #[test]
    fn a_url_keeps_its_options_and_loses_its_secrets() {
        let told = |url: &str| args(None, Some(url), None).command("jobs");
        assert_eq!(told("postgres://h/db?sslmode=require"), "cronward jobs --store 'postgres://h/db?sslmode=require'");
        assert_eq!(told("redis://:secret@h/1"), "cronward jobs --store 'redis://:***@h/1'");
        for url in ["redis://user:secret@h", "redis://h?password=secret", "redis://:a/secret@h", "redis://secret@h"] {
            assert!(!told(url).contains("secret"), "{}", told(url));
        }
    }

    #[test]
    fn what_needs_a_jobs_command_names_a_file_that_has_it() {
        let args = args(Some("mine.toml"), Some("sqlite:a.db"), None);
        assert_eq!(
            args.command_of_file("trigger a", true),
            "cronward trigger a --config mine.toml --store sqlite:a.db"
        );
        assert_eq!(args.command_of_file("trigger a", false), "cronward trigger a --config FILE --store sqlite:a.db");
    }
}
