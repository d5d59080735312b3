//! How many types bear one name: a reader who meets `Fault` has to know which. And who names a store: its own folder, and one table.

use std::collections::BTreeMap;

use super::circles::{Sources, test_files};
use super::rules::{ADAPTERS, path};
use super::source::{blank, literals, types, without_tests};

/// The most types that one name may stand for.
const MOST: usize = 2;

/// Names that stand for more types than they may.
pub(crate) fn overused(sources: &Sources) -> Vec<String> {
    let mut places: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let tests = test_files(sources);
    for (file, text) in sources.iter().filter(|(file, _)| !tests.contains(*file)) {
        for name in types(&without_tests(&blank(text))) {
            places.entry(name).or_default().push(file);
        }
    }
    let over = places.iter().filter(|(_, files)| files.len() > MOST);
    over.map(|(name, files)| {
        format!("{name} stands for {} types, {MOST} is the most: {}", files.len(), files.join(", "))
    })
    .collect()
}

/// The table of the schemes, and of the backends by the cargo features.
const STORE_TABLE: [&str; 2] = ["store/url.rs", "store/open.rs"];

/// Files that mean something else by such a word.
const OTHER_MEANING: [&str; 1] = [
    // The users of a machine.
    "cli/import/entry.rs",
];

/// Adapters name themselves. What weighs Redlock's answers is a part of one, and the suite keeps stores with flaws.
fn names_itself(folder: &str) -> bool {
    ADAPTERS.contains(&folder) || matches!(folder, "redlock" | "conformance")
}

/// Literals that are the scheme or the feature of a store, or a url, outside its folder and the table.
pub(crate) fn named_stores(sources: &Sources) -> Vec<String> {
    let tests = test_files(sources);
    let stores = store_names(&sources["store/url.rs"]);
    let may = |file: &str| {
        let folder = file.strip_prefix("store/").and_then(|rest| rest.split_once('/')).map(|(folder, _)| folder);
        STORE_TABLE.contains(&file) || OTHER_MEANING.contains(&file) || folder.is_some_and(names_itself)
    };
    let mut found = Vec::new();
    for (file, text) in sources.iter().filter(|(file, _)| !may(file) && !tests.contains(*file)) {
        let names = |literal: &String| {
            let start = &literal[..literal.find(':').unwrap_or(literal.len())];
            stores.iter().any(|store| store == start)
        };
        let named = literals(text).into_iter().filter(names);
        found.extend(named.map(|literal| format!("{} names a store, {literal:?}: let its backend say it", path(file))));
    }
    found
}

/// Files outside of the adapters' folders that name each of them, in code or in words: whoever adds a store goes through these.
pub(crate) fn files_that_name_every_store(sources: &Sources) -> Vec<&str> {
    // Memory is also what machines have.
    let stores = || ADAPTERS.iter().filter(|store| **store != "memory");
    let adapter = |file: &str| ADAPTERS.iter().any(|store| file.starts_with(&format!("store/{store}/")));
    let tests = test_files(sources);
    let others = sources.iter().filter(|(file, _)| !adapter(file) && !tests.contains(*file));
    let named = others.filter(|(_, text)| {
        let text = text.to_lowercase();
        stores().all(|store| text.contains(store))
    });
    named.map(|(file, _)| file.as_str()).collect()
}

/// What stands between the brackets of `SCHEMES`: each scheme and its feature.
fn store_names(table: &str) -> Vec<String> {
    let from = table.find("pub const SCHEMES").expect("the table of the schemes");
    let to = from + table[from..].find("];").expect("its end");
    let mut names = literals(&table[from..to]);
    names.retain(|name| !name.is_empty());
    names
}
