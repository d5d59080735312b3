//! From text to TOML with places, and from there to [`Config`]: the order in which the parts are checked, and how much of the text is.
//!
//! The parser of TOML goes on after an error, so several are told; of each line only the first one, because the others are mostly
//! its echo.

use std::ops::Range;

use toml::de::{DeTable, Error};

use crate::config::context::Context;
use crate::config::diagnostic::{floor_boundary, position};
use crate::config::reader::Section;
use crate::config::{
    Config, Diagnostics, Environment, host, http_section, jobs, lock_lints, secrets, sections, settings, sink_section,
};
use crate::job::JobName;

/// How much of a file is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent<'a> {
    /// Whether one job can be used. What the file says of the others is not looked at, and they are not in the answer.
    Job(&'a JobName),
    /// Whether all of it can be used.
    Errors,
    /// That, and what is allowed but may not be meant.
    Lints,
}

/// What a file says, with what is to be said of it; or what is wrong with it.
pub type Parsed = Result<(Config, Diagnostics), Diagnostics>;

/// Whether a text can be used. `path` is only shown. The report in `Ok` has warnings that cost nothing to find.
pub fn parse(path: &str, text: String, env: &Environment) -> Parsed {
    extent(path, text, env, Extent::Errors)
}

/// Whether one job of a text can be used: the answer has no other. For what is started often and needs no more.
pub fn parse_job(path: &str, text: String, env: &Environment, job: &JobName) -> Parsed {
    extent(path, text, env, Extent::Job(job))
}

/// Whether a text can be used, and everything else that is worth saying about it. The report in `Ok` has warnings and notes.
pub fn lint(path: &str, text: String, env: &Environment) -> Parsed {
    extent(path, text, env, Extent::Lints)
}

fn extent(path: &str, text: String, env: &Environment, extent: Extent<'_>) -> Parsed {
    let ctx = Context::new(&text, env);
    let config = read(&ctx, extent);
    let hidden = ctx.hidden();
    let findings = ctx.into_findings();
    let report = Diagnostics { path: path.to_owned(), text: secrets::mask(&text, &hidden), findings };
    if report.has_errors() { Err(report) } else { Ok((config, report)) }
}

/// Reads what is asked for. Where something is wrong its default stands in, so that the rest is checked too.
fn read(ctx: &Context<'_>, extent: Extent<'_>) -> Config {
    let table = tables(ctx);
    ctx.end_of_syntax();
    let root = Section::root(ctx, &table);
    root.only(&["node", "store", "defaults", "http", "notify", "jobs"], sections::HOMES);
    let node = sections::node(&root.child("node"));
    let store = sections::store(&root.child("store"));
    let port = root.child("http");
    let http = http_section::http(&port);
    let receivers = root.child("notify");
    let notify = sink_section::sinks(&receivers);
    let defaults = settings::defaults(&root.child("defaults"));
    let only = if let Extent::Job(job) = extent { Some(job) } else { None };
    let mut drafts = jobs::read(&root.child("jobs"), &defaults, only);
    sink_section::names(ctx, &drafts, &receivers);
    jobs::conflicts(ctx, &mut drafts);
    lock_lints::conflicts(ctx, &mut drafts, &store);
    if extent == Extent::Lints {
        jobs::check(ctx, &drafts, &node, &store);
        http.iter().for_each(|http| http_section::check(&port, http));
        lock_lints::check(ctx, &drafts);
        host::check(ctx, &drafts, &node);
        sink_section::unused(&drafts, &receivers, &notify);
    }
    let jobs = drafts.into_iter().map(|draft| (draft.spec.name.clone(), draft.spec)).collect();
    Config { node, store, http, notify, jobs }
}

/// The text as far as it could be read; its syntax errors go to the context.
fn tables<'t>(ctx: &Context<'t>) -> DeTable<'t> {
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

#[cfg(test)]
mod tests {
    use super::*;

    use crate::schedule::compiled_here;

    /// A thousand jobs, none of whose expressions another test has; each has something to warn of.
    fn thousand(second: u32) -> String {
        let job = |number: u32| {
            let (minute, hour) = (number % 60, number / 60);
            format!(
                "[jobs.j{number}]\nschedule = \"{second} {minute} {hour} 3 7 *\"\ncommand = [\"true\"]\ntimeout = \"2h\"\n"
            )
        };
        (0..1_000).map(job).collect()
    }

    fn env() -> Environment {
        Environment::new("2026-11-21T12:00:00Z".parse().unwrap())
    }

    #[test]
    fn of_a_thousand_jobs_one_is_compiled_for_a_command_that_needs_one() {
        let before = compiled_here();
        let job = JobName::new("j7").unwrap();
        let (config, _) = parse_job("jobs.toml", thousand(51), &env(), &job).unwrap();
        assert_eq!(config.jobs.keys().collect::<Vec<_>>(), [&job]);
        assert_eq!(compiled_here() - before, 1);
    }

    #[test]
    fn no_expression_is_compiled_twice_however_often_its_file_is_read() {
        let before = compiled_here();
        for _ in 0..2 {
            assert_eq!(parse("jobs.toml", thousand(52), &env()).unwrap().0.jobs.len(), 1_000);
        }
        assert_eq!(compiled_here() - before, 1_000);
    }

    #[test]
    fn nothing_is_linted_unless_it_is_asked_for() {
        let text = "[jobs.a]\nschedule = \"0 * * * *\"\ncommand = [\"true\"]\ntimeout = \"2h\"\n";
        let findings = |read: Parsed| read.unwrap().1.findings.len();
        let job = JobName::new("a").unwrap();
        assert_eq!(findings(lint("jobs.toml", text.to_owned(), &env())), 1);
        assert_eq!(findings(parse("jobs.toml", text.to_owned(), &env())), 0);
        assert_eq!(findings(parse_job("jobs.toml", text.to_owned(), &env(), &job)), 0);
    }

    #[test]
    fn an_error_in_the_job_that_is_used_is_told_and_one_in_another_is_not_its_matter() {
        let text = "[jobs.a]\nschedule = \"61 * * * *\"\ncommand = [\"true\"]\n\n[jobs.b]\nschedule = \"@daily\"\ncommand = [\"true\"]\n";
        let read = |job: &str| parse_job("jobs.toml", text.to_owned(), &env(), &JobName::new(job).unwrap());
        assert!(read("a").unwrap_err().to_string().contains("minute \"61\""));
        assert_eq!(read("b").unwrap().0.jobs.len(), 1);
        assert!(read("c").unwrap().0.jobs.is_empty());
        assert!(
            parse_job("jobs.toml", format!("[store]\nurl = 3\n{text}"), &env(), &JobName::new("b").unwrap()).is_err()
        );
    }
}
