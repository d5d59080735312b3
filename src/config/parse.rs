//! From text to [`Config`]: the order in which the parts are checked, and how much of the text is.

use crate::config::context::Context;
use crate::config::reader::Section;
use crate::config::{Config, Environment, Report, conflicts, document, jobs, lints, secrets, sections, settings};
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

/// Whether a text can be used. `path` is only shown. The report in `Ok` has warnings that cost nothing to find.
pub fn parse(path: &str, text: String, env: &Environment) -> Result<(Config, Report), Report> {
    extent(path, text, env, Extent::Errors)
}

/// Whether one job of a text can be used: the answer has no other. For what is started often and needs no more.
pub fn parse_job(path: &str, text: String, env: &Environment, job: &JobName) -> Result<(Config, Report), Report> {
    extent(path, text, env, Extent::Job(job))
}

/// Whether a text can be used, and everything else that is worth saying about it. The report in `Ok` has warnings and notes.
pub fn lint(path: &str, text: String, env: &Environment) -> Result<(Config, Report), Report> {
    extent(path, text, env, Extent::Lints)
}

fn extent(path: &str, text: String, env: &Environment, extent: Extent<'_>) -> Result<(Config, Report), Report> {
    let ctx = Context::new(&text, env);
    let config = read(&ctx, extent);
    let hidden = ctx.hidden();
    let findings = ctx.into_findings();
    let report = Report { path: path.to_owned(), text: secrets::mask(&text, &hidden), findings };
    if report.has_errors() { Err(report) } else { Ok((config, report)) }
}

/// Reads what is asked for. Where something is wrong its default stands in, so that the rest is checked too.
fn read(ctx: &Context<'_>, extent: Extent<'_>) -> Config {
    let table = document::read(ctx);
    ctx.end_of_syntax();
    let root = Section::root(ctx, &table);
    root.only(&["node", "store", "defaults", "http", "jobs"], sections::HOMES);
    let node = sections::node(&root.child("node"));
    let store = sections::store(&root.child("store"));
    let http = sections::http(&root.child("http"));
    let defaults = settings::defaults(&root.child("defaults"));
    let only = if let Extent::Job(job) = extent { Some(job) } else { None };
    let mut drafts = jobs::read(&root.child("jobs"), &defaults, only);
    conflicts::check(ctx, &mut drafts);
    if extent == Extent::Lints {
        lints::check(ctx, &drafts, &node, &store);
    }
    let jobs = drafts.into_iter().map(|draft| (draft.spec.name.clone(), draft.spec)).collect();
    Config { node, store, http, jobs }
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
        let findings = |read: Result<(Config, Report), Report>| read.unwrap().1.findings.len();
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
