//! From text to TOML with places, and what is no TOML, in words. The parser goes on after an error, so several are told;
//! of each line only the first one, because the others are mostly its echo.

use std::ops::Range;

use toml::de::{DeTable, Error};

use crate::config::context::Context;
use crate::config::diagnostic::{floor_boundary, position};

/// The text as far as it could be read; its syntax errors go to the context.
pub(super) fn read<'t>(ctx: &Context<'t>) -> DeTable<'t> {
    let (table, mut errors) = DeTable::parse_recoverable(ctx.text);
    let start_of = |error: &Error| error.span().map_or(ctx.text.len(), |span| span.start);
    errors.sort_by_key(start_of);
    // Where the block of a repeated header is: its keys repeat those of the first one, which is no news.
    let mut repeated = 0..0;
    let mut told = None;
    for error in errors {
        let start = start_of(&error);
        let line = Some(line_start(ctx.text, start));
        let echo = is_duplicate(&error) && repeated.contains(&start);
        if echo || told == line || ctx.is_full() {
            continue;
        }
        told = line;
        repeated = tell(ctx, &error).unwrap_or(repeated);
    }
    table.into_inner()
}

fn is_duplicate(error: &Error) -> bool {
    error.message() == "duplicate key"
}

/// Tells an error. Answers the block of a header that is there twice.
fn tell(ctx: &Context<'_>, error: &Error) -> Option<Range<usize>> {
    let span = error.span().unwrap_or(ctx.text.len()..ctx.text.len());
    let line = line_at(ctx.text, span.start);
    if let Some((key, value)) = unquoted(line) {
        let message = format!("the value of {key} is not in quotes");
        ctx.error("syntax", span, message, format!("write {key} = \"{value}\""));
        return None;
    }
    if !is_duplicate(error) {
        ctx.error("syntax", span, error.message().to_owned(), None);
        return None;
    }
    match header(line) {
        Some(title) => Some(repeated_header(ctx, span, &title)),
        None => {
            repeated_key(ctx, span);
            None
        }
    }
}

/// A job that is there twice is the reason why jobs are a map, so it has its own words.
fn repeated_header(ctx: &Context<'_>, span: Range<usize>, title: &str) -> Range<usize> {
    let start = line_start(ctx.text, span.start);
    let first = lines_before(ctx.text, start).filter(|(_, line)| header(line).as_deref() == Some(title)).last();
    let on_line = first.map(|(at, _)| format!("the first one is on line {}", position(ctx.text, at).0));
    let block = start..end_of_block(ctx.text, span.start);
    match title.strip_prefix("jobs.") {
        Some(job) => {
            let hint =
                on_line.map_or_else(String::new, |on_line| format!("{on_line}: ")) + "give one of them another name";
            ctx.error("duplicate-job", span, format!("job {job} is defined twice"), hint);
        }
        None => ctx.error("duplicate-key", span, format!("[{title}] is there twice"), on_line),
    }
    block
}

fn repeated_key(ctx: &Context<'_>, span: Range<usize>) {
    let key = ctx.text.get(span.clone()).unwrap_or("").trim_matches(['"', '\'']).to_owned();
    let is_same = |line: &str| line.split_once('=').is_some_and(|(name, _)| name.trim().trim_matches('"') == key);
    let first = lines_before(ctx.text, line_start(ctx.text, span.start))
        .take_while(|(_, line)| header(line).is_none())
        .find(|(_, line)| is_same(line));
    let hint = match first {
        Some((at, _)) => format!("the first one is on line {}: keep one of them", position(ctx.text, at).0),
        None => "keep one of them".to_owned(),
    };
    ctx.error("duplicate-key", span, format!("{key} is given twice"), hint);
}

/// The name in a header like `[jobs.a]`.
fn header(line: &str) -> Option<String> {
    let (name, _) = line.trim_start().strip_prefix('[')?.split_once(']')?;
    Some(name.chars().filter(|c| !c.is_whitespace() && !matches!(c, '"' | '\'')).collect())
}

/// The lines before an offset at which a line starts, each with its own start; nearest first.
fn lines_before(text: &str, offset: usize) -> impl Iterator<Item = (usize, &str)> {
    let mut end = offset;
    std::iter::from_fn(move || {
        let stop = end.checked_sub(1)?;
        let line = text.get(..stop)?;
        end = line.rfind('\n').map_or(0, |newline| newline + 1);
        Some((end, line.get(end..)?))
    })
}

/// Where the next header after an offset begins, or the text ends.
fn end_of_block(text: &str, offset: usize) -> usize {
    let rest = text.get(offset..).unwrap_or("");
    rest.find("\n[").map_or(text.len(), |at| offset + at + 1)
}

/// The key and the value of a line like `lease_ttl = 60s`: the slip that is made most.
fn unquoted(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once('=')?;
    let (key, value) = (key.trim(), value.split('#').next().unwrap_or("").trim());
    let bare = |c: char| c.is_ascii_alphanumeric() || " _-/.:*@,".contains(c);
    let plain_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    let plain_value = !value.is_empty() && value.len() <= 60 && value.chars().all(bare);
    let literal = value.parse::<f64>().is_ok() || matches!(value, "true" | "false");
    (plain_key && plain_value && !literal).then_some((key, value))
}

fn line_start(text: &str, offset: usize) -> usize {
    let before = text.get(..floor_boundary(text, offset)).unwrap_or("");
    before.rfind('\n').map_or(0, |newline| newline + 1)
}

/// The line that an offset is on, without its end.
fn line_at(text: &str, offset: usize) -> &str {
    let rest = text.get(line_start(text, offset)..).unwrap_or("");
    rest.lines().next().unwrap_or("")
}
