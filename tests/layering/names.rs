//! How many types bear one name. A reader who meets `Fault` has to know which.

use std::collections::BTreeMap;

use crate::circles::{Sources, is_test_file};
use crate::source::{blank, types, without_tests};

/// The most types that one name may stand for.
const MOST: usize = 2;

/// Names that stand for more, and for how many. Only ever lower one, or take it out.
const EXCEPTIONS: &[(&str, usize)] = &[
    ("Answer", 4),
    ("Args", 25),
    ("Ask", 3),
    ("Asked", 4),
    ("Call", 4),
    ("Control", 3),
    ("End", 3),
    ("Entry", 6),
    ("Environment", 3),
    ("Failure", 3),
    ("Fault", 7),
    ("Finding", 4),
    ("Found", 3),
    ("Grant", 4),
    ("Known", 3),
    ("Limits", 4),
    ("Line", 3),
    ("Link", 3),
    ("Listener", 4),
    ("Loaded", 3),
    ("Open", 4),
    ("Outcome", 6),
    ("Pending", 3),
    ("Place", 6),
    ("Plan", 4),
    ("Report", 5),
    ("Run", 4),
    ("Said", 4),
    ("Session", 3),
    ("Shared", 4),
    ("Source", 4),
    ("Standing", 5),
    ("State", 8),
    ("Step", 3),
    ("Story", 3),
    ("Target", 4),
    ("Why", 4),
];

/// Names that stand for more types than they may, and exceptions that are higher than they need to be.
pub(crate) fn overused(sources: &Sources) -> Vec<String> {
    let mut places: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (file, text) in sources.iter().filter(|(file, _)| !is_test_file(file)) {
        for name in types(&without_tests(&blank(text))) {
            places.entry(name).or_default().push(file);
        }
    }
    let most = |name: &str| EXCEPTIONS.iter().find(|(other, _)| *other == name).map_or(MOST, |(_, count)| *count);
    let over = places.iter().filter(|(name, files)| files.len() > most(name));
    let over = over.map(|(name, files)| {
        format!("{name} stands for {} types, {} is the most: {}", files.len(), most(name), files.join(", "))
    });
    let fewer = EXCEPTIONS.iter().filter_map(|(name, count)| {
        let there = places.get(*name).map_or(0, Vec::len);
        (there < *count).then(|| format!("{name} stands for {there} types and its exception says {count}: lower it"))
    });
    over.chain(fewer).collect()
}
