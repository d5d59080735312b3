//! `docs/metrics.md` has each metric, and the text has what the page says.

use std::collections::{BTreeMap, BTreeSet};

use cronward::metrics::FAMILIES;
use cronward::store::StoreOptions;
use cronward::store::memory::MemoryStore;
use std::sync::Arc;

use crate::bench::{Bench, everything};
use crate::promtool::read;

/// A name with its type and its labels.
type Row = (String, (String, BTreeSet<String>));

/// The rows of the page's tables: `| name | type | labels | …`.
fn documented(page: &str) -> BTreeMap<String, (String, BTreeSet<String>)> {
    let row = |line: &str| -> Option<Row> {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let name = cells.next()?.trim_end_matches('`');
        let (kind, labels) = (cells.next()?, cells.next()?);
        let labels = labels.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        Some((name.to_owned(), (kind.to_owned(), labels)))
    };
    page.lines().filter_map(row).collect()
}

fn in_code() -> BTreeMap<String, (String, BTreeSet<String>)> {
    let labels = |labels: &[&str]| labels.iter().map(|label| (*label).to_owned()).collect();
    let row = |family: &cronward::metrics::Family| -> Row {
        (family.name.to_owned(), (family.kind.as_str().to_owned(), labels(family.labels)))
    };
    FAMILIES.iter().map(row).collect()
}

#[test]
fn the_page_has_the_metrics_that_there_are() {
    let (page, code) = (documented(&read("docs/metrics.md")), in_code());
    assert_eq!(code.len(), FAMILIES.len(), "a name is there twice");
    assert_eq!(page, code);
}

/// The names of a series' labels.
fn labels(series: &str) -> BTreeSet<String> {
    let Some((_, labels)) = series.split_once('{') else { return BTreeSet::new() };
    labels
        .split("=\"")
        .filter_map(|part| part.rsplit([',', '{', '"']).next())
        .filter(|name| !name.starts_with('}'))
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn the_text_has_the_metrics_and_the_labels_of_the_table_and_no_others() {
    let bench = Bench::of_lockers(&["a"]);
    everything(&bench, "a");
    let memory = MemoryStore::new(StoreOptions::default(), Arc::new(bench.clock.clone()));
    bench.metrics.around(Arc::new(memory)).jobs().await.unwrap();
    let text = bench.text();
    let typed = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).map(|line| line.split_once(' ').unwrap());
    let expected = FAMILIES.iter().map(|family| (family.name, family.kind.as_str()));
    assert_eq!(typed.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    let mut family = FAMILIES.iter();
    let mut now = None;
    for line in text.lines() {
        if line.starts_with("# HELP") {
            now = family.next();
        } else if !line.starts_with('#') {
            let now = now.unwrap();
            assert!(line.starts_with(now.name), "{line} is under {}", now.name);
            let mut told = labels(line);
            let is_ours = now.name.starts_with("cronward_");
            assert_eq!(told.remove("namespace"), is_ours, "{line}");
            assert_eq!(told.remove("le"), line.starts_with(&format!("{}_bucket", now.name)), "{line}");
            assert_eq!(told, now.labels.iter().map(|label| (*label).to_owned()).collect(), "{line}");
        }
    }
}
