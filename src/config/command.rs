//! The command of a job, or of a receiver of messages: a list, which is run as it is, or a line for the shell. Variables are never
//! replaced in it: `{slot}` and the environment are its inputs.

use std::ops::Range;

use toml::de::DeValue;

use crate::config::reader::Section;
use crate::config::value::Entry;
use crate::exec::check_placeholders;
use crate::job::Program;

/// Linux starts nothing with a longer argument or variable (`MAX_ARG_STRLEN`, its last byte a NUL).
pub(crate) const LONGEST_WORD: usize = 128 * 1024 - 1;

const EXAMPLE: &str = "[\"/usr/local/bin/push\", \"--hour\", \"{slot}\"]";

/// The program of a job; told and empty when there is none.
pub(super) fn program(section: &Section<'_>) -> Program {
    let nothing = Program::Direct(Vec::new());
    let Some(entry) = section.entry("command") else {
        if section.is_misspelled("command") {
            return nothing;
        }
        let hint = format!("add command = {EXAMPLE}");
        section.ctx.error("missing-command", section.span.clone(), "the job has no command".to_owned(), hint);
        return nothing;
    };
    match entry.value() {
        DeValue::String(_) => shell(&entry).unwrap_or(nothing),
        DeValue::Array(_) => direct(&entry).unwrap_or(nothing),
        _ => entry.wrong_type("a list of strings, or a string for /bin/sh", EXAMPLE).unwrap_or(nothing),
    }
}

fn shell(entry: &Entry<'_>) -> Option<Program> {
    let line = entry.raw("\"make backup | gzip > /srv/backup.gz\"")?;
    if line.trim().is_empty() {
        empty(entry);
        return None;
    }
    fits(entry, line.len()).then_some(())?;
    if let Some((range, name)) = first_placeholder(line) {
        let span = entry.ctx.within(&entry.span(), line, range);
        let message = format!("{{{name}}} is not replaced in a shell command");
        let hint = format!("use \"$CRONWARD_{}\", or write the command as a list", name.to_ascii_uppercase());
        entry.ctx.warn("shell-placeholder", span, message, hint);
    }
    Some(Program::Shell(line.to_owned()))
}

/// The first `{slot}` or the like of a shell line, and where it is. `${slot}` is the shell's own.
fn first_placeholder(line: &str) -> Option<(Range<usize>, &str)> {
    line.match_indices('{').find_map(|(at, _)| {
        let (name, _) = line.get(at + 1..)?.split_once('}')?;
        let of_shell = line.get(..at).is_some_and(|before| before.ends_with('$'));
        let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let known = plain && !of_shell && check_placeholders(&format!("{{{name}}}")).is_ok();
        known.then_some((at..at + name.len() + 2, name))
    })
}

fn direct(entry: &Entry<'_>) -> Option<Program> {
    let items = entry.items("a list of strings", EXAMPLE)?;
    let words: Vec<Option<String>> = items.iter().map(word).collect();
    let words: Vec<String> = words.into_iter().collect::<Option<_>>()?;
    if words.first().is_none_or(|program| program.trim().is_empty()) {
        empty(entry);
        return None;
    }
    Some(Program::Direct(words))
}

fn empty(entry: &Entry<'_>) {
    entry.refuse("empty-command", "is empty", format!("write command = {EXAMPLE}"));
}

/// One word of a list command, its placeholders checked.
fn word(item: &Entry<'_>) -> Option<String> {
    let text = item.raw("\"…\"")?;
    if let Err(error) = check_placeholders(text) {
        let variable = text.contains("${").then_some("variables are not replaced in commands: set them in env");
        item.object("unknown-placeholder", error, variable.map(str::to_owned));
        return None;
    }
    fits(item, text.len()).then(|| text.to_owned())
}

/// Whether the system passes so many bytes on to a command in one piece.
pub(super) fn fits(entry: &Entry<'_>, bytes: usize) -> bool {
    if bytes > LONGEST_WORD {
        let what = format!("has {bytes} bytes: Linux starts no command with more than {LONGEST_WORD} in one piece");
        entry.refuse("too-long", &what, "put it into a file, and let the command read that");
    }
    bytes <= LONGEST_WORD
}
