//! Keeps the documents honest where that can be checked: links lead somewhere, and the
//! log events are those that are logged. It never fetches anything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Every Markdown file of the repository.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !["target", "node_modules"].contains(&&*name) && !name.starts_with('.') {
            found.extend(documents(&path));
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
    found
}

/// The targets of `[text](target)`, without their fragments; those on the web are left out.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    targets.filter(|target| !target.is_empty() && !target.contains("://")).collect()
}

#[test]
fn every_link_of_the_documents_leads_to_a_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let documents = documents(root);
    assert!(documents.len() > 10, "only {} documents found", documents.len());
    let mut dead = Vec::new();
    for document in documents {
        let text = std::fs::read_to_string(&document).unwrap();
        let folder = document.parent().unwrap();
        let broken = links(&text).into_iter().filter(|target| !folder.join(target).exists());
        dead.extend(broken.map(|target| format!("{}: {target}", document.display())));
    }
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

#[test]
fn links_are_found_and_the_web_is_left_out() {
    let text = "[a](b.md) [c](https://d.e/f) and [g](h/i.md#j), [k](#l)";
    assert_eq!(links(text), ["b.md", "h/i.md"]);
}

/// Level and message of every `info!(…, "message")` and the like.
fn logged(code: &str) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for level in ["debug", "info", "warn", "error"] {
        for call in code.split(&format!("{level}!(")).skip(1) {
            found.insert((level.to_owned(), last_string(call)));
        }
    }
    found
}

/// The last string literal before the parenthesis that ends the call.
fn last_string(call: &str) -> String {
    let (mut last, mut depth, mut chars) = (String::new(), 1, call.chars());
    while let Some(c) = chars.next() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => break,
            ')' => depth -= 1,
            '"' => last = literal(&mut chars),
            _ => {}
        }
    }
    last
}

fn literal(chars: &mut std::str::Chars<'_>) -> String {
    let mut text = String::new();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => text.extend(chars.next()),
            c => text.push(c),
        }
    }
    text
}

/// Level and message of every row of the table.
fn documented(text: &str) -> BTreeSet<(String, String)> {
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.trim_matches('|').split(" | ");
        let level = cells.next()?.trim();
        let message = cells.next()?.trim().strip_prefix('`')?.strip_suffix('`')?;
        Some((level.to_owned(), message.to_owned()))
    });
    rows.collect()
}

/// The events of a journal, as they are written: the variants of `Event` in snake case.
fn journalled(code: &str) -> BTreeSet<String> {
    let body = code.split("pub enum Event {").nth(1).unwrap().split("\n}").next().unwrap();
    let variants =
        body.lines().filter_map(|line| line.strip_prefix("    ")).filter(|line| line.starts_with(char::is_uppercase));
    let names = variants.map(|line| line.split(|c: char| !c.is_alphanumeric()).next().unwrap());
    names.filter(|name| *name != "Unknown").map(snake_case).collect()
}

fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(c.to_lowercase());
    }
    text
}

#[test]
fn the_table_of_the_journal_is_what_is_written() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let written = journalled(&read("src/event/mod.rs"));
    assert!(written.len() > 25, "only {} events found in the code", written.len());
    let page = read("docs/journal.md");
    let table = page.split("## Events").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    assert_eq!(rows.map(str::to_owned).collect::<BTreeSet<_>>(), written);
}

#[test]
fn the_table_of_log_events_is_what_is_logged() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let (code, table) = (logged(&read("src/observe/log.rs")), documented(&read("docs/telemetry.md")));
    assert!(code.len() > 20, "only {} events found in the code", code.len());
    let undocumented: Vec<_> = code.difference(&table).collect();
    let gone: Vec<_> = table.difference(&code).collect();
    assert!(
        undocumented.is_empty() && gone.is_empty(),
        "not in the table: {undocumented:?}\nnot in the code: {gone:?}"
    );
}

#[test]
fn the_readmes_begin_with_the_two_commands_that_set_everything_up() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for page in ["README.md", "README.zh-CN.md"] {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        let block = text.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
        let commands: Vec<&str> = block.lines().map(|line| line.split('#').next().unwrap().trim()).collect();
        assert_eq!(commands, ["cargo run --release -- run", "make test"], "{page}");
    }
}

#[test]
fn a_crontab_line_of_the_pages_names_the_program_where_the_packages_install_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let packages = read("deploy/packages/nfpm.yaml");
    let installed = packages
        .lines()
        .find_map(|line| line.trim().strip_prefix("dst: ").filter(|path| path.ends_with("bin/cronward")));
    let command = format!(" {} exec ", installed.unwrap());
    for page in ["README.md", "README.zh-CN.md", "docs/migrate/crontab.md"] {
        let text = read(page);
        let lines: Vec<&str> =
            text.lines().filter(|line| line.contains(" * * * root ") && line.contains("exec ")).collect();
        assert!(!lines.is_empty(), "{page}");
        let wrong: Vec<_> = lines.into_iter().filter(|line| !line.contains(&command)).collect();
        assert!(wrong.is_empty(), "{page}: without{command}: {wrong:#?}");
    }
}
