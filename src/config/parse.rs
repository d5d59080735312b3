//! From text to [`Config`]: the order in which the parts are checked.

use crate::config::context::Context;
use crate::config::reader::Section;
use crate::config::{Config, Environment, Report, document, jobs, lint, secrets, sections, settings};

/// Checks a text. `path` is only shown. The report in `Ok` has warnings and notes only.
pub fn parse(path: &str, text: String, env: &Environment) -> Result<(Config, Report), Report> {
    let ctx = Context::new(&text, env);
    let config = read(&ctx);
    let hidden = ctx.hidden();
    let findings = ctx.into_findings();
    let report = Report { path: path.to_owned(), text: secrets::mask(&text, &hidden), findings };
    if report.has_errors() { Err(report) } else { Ok((config, report)) }
}

/// Reads all of it. Where something is wrong its default stands in, so that the rest is checked too.
fn read(ctx: &Context<'_>) -> Config {
    let table = document::read(ctx);
    ctx.end_of_syntax();
    let root = Section::root(ctx, &table);
    root.only(&["node", "store", "defaults", "http", "jobs"], sections::HOMES);
    let node = sections::node(&root.child("node"));
    let store = sections::store(&root.child("store"));
    let http = sections::http(&root.child("http"));
    let defaults = settings::defaults(&root.child("defaults"));
    let drafts = jobs::read(&root.child("jobs"), &defaults);
    lint::check(ctx, &drafts, &node, &store);
    let jobs = drafts.into_iter().map(|draft| (draft.spec.name.clone(), draft.spec)).collect();
    Config { node, store, http, jobs }
}
