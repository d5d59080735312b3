//! The program that writes docs/reliability.md: what it makes of a run, and which runs it refuses.

#[path = "../../../examples/report/evidence.rs"]
pub(crate) mod evidence;
#[path = "../../cluster/chaos/stores/names.rs"]
#[allow(dead_code, reason = "the harness asks for single names, this for all")]
pub(crate) mod names;
#[path = "../../../examples/report/render.rs"]
pub(crate) mod render;
#[path = "../../../examples/report/servers.rs"]
pub(crate) mod servers;
#[path = "../../../examples/report/simulated.rs"]
pub(crate) mod simulated;

use std::path::{Path, PathBuf};

use evidence::{Evidence, Tree};

const PAGE: &str = include_str!("page.txt");

/// The files of a run: one for each store that the harness of `make chaos` and `make chaos-stores` knows.
fn parts() -> Vec<String> {
    let stores = names::EVERY.map(|store| format!("chaos-{store}.json"));
    ["run.json", "speed.json", "model.jsonl", "simulation.json"].map(str::to_owned).into_iter().chain(stores).collect()
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/repository/report/fixture")
}

fn clean() -> Tree {
    Tree { commit: "c0ffee".to_owned(), changed: String::new() }
}

/// A copy of the fixture with one part changed.
fn spoilt(part: &str, from: &str, to: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in parts() {
        let text = std::fs::read_to_string(fixture().join(&name)).unwrap();
        let text = if name == part { text.replace(from, to) } else { text };
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn page(folder: &Path) -> String {
    render::render(&Evidence::read(folder, &clean()).unwrap())
}

#[test]
fn the_page_has_the_figures_of_the_run_and_no_others() {
    let evidence = Evidence::read(&fixture(), &clean()).unwrap();
    assert_eq!(evidence.faults(), Vec::<String>::new());
    let page = render::render(&evidence);
    assert!(page == PAGE, "tests/repository/report/page.txt differs from what is rendered:\n{page}");
}

#[test]
fn a_part_that_is_missing_is_named_with_the_way_out() {
    for part in parts() {
        let folder = spoilt("", "", "");
        std::fs::remove_file(folder.path().join(&part)).unwrap();
        let error = Evidence::read(folder.path(), &clean()).unwrap_err();
        assert!(error.contains(&part) && error.contains("run make report"), "{error}");
    }
}

#[test]
fn a_part_that_cannot_be_read_is_named_with_its_line() {
    for (part, from, to) in [
        ("simulation.json", "\"worlds\"", "\"planets\""),
        ("simulation.json", "\"judged\"", "\"guessed\""),
        ("speed.json", "\"slots_per_second\"", "\"slots_per_minute\""),
        ("model.jsonl", "\"unique\":61,", ""),
        ("chaos-redis.json", "\"report\"", "\"reports\""),
    ] {
        let error = Evidence::read(spoilt(part, from, to).path(), &clean()).unwrap_err();
        assert!(error.contains(part) && error.contains("missing field"), "{error}");
    }
    let error = Evidence::read(spoilt("model.jsonl", "\"control\"", "\"kontrol\"").path(), &clean()).unwrap_err();
    assert!(error.contains("model.jsonl:4: missing field `world`"), "{error}");
}

#[test]
fn another_commit_or_a_tree_with_changes_is_refused() {
    let other = Tree { commit: "decade".to_owned(), changed: String::new() };
    let error = Evidence::read(&fixture(), &other).unwrap_err();
    assert_eq!(error, "run.json is of commit c0ffee, and decade is checked out: run make report again");
    let stale = spoilt("chaos-redis.json", "{\"store\"", "{\"commit\":\"decade\",\"store\"");
    let error = Evidence::read(stale.path(), &clean()).unwrap_err();
    assert!(error.starts_with("chaos-redis.json is of commit decade"), "{error}");
    let dirty = Tree { changed: " M src/lib.rs\n".to_owned(), ..clean() };
    let error = Evidence::read(&fixture(), &dirty).unwrap_err();
    assert!(error.contains("not committed (M src/lib.rs)"), "{error}");
}

#[test]
fn what_went_wrong_is_the_first_thing_that_the_page_tells() {
    for (part, from, to, said) in [
        (
            "chaos-redis.json",
            "\"unexplained\":0,\"runs\"",
            "\"unexplained\":2,\"runs\"",
            "redis: 2 slots unexplained; redis: 2 unexplained slots, 0 counted by class; redis: 2 unexplained slots, 0 listed",
        ),
        (
            "chaos-redis.json",
            "\"lost\":{\"explained\":2,\"slots\":2,\"unexplained\":0}",
            "\"lost\":{\"explained\":1,\"slots\":2,\"unexplained\":1}",
            "redis: 0 unexplained slots, 1 counted by class",
        ),
        (
            "chaos-redis.json",
            "\"lost\":{\"explained\":2",
            "\"lost\":{\"explained\":1",
            "redis: 2 lost, 1 explained or unexplained",
        ),
        (
            "chaos-redis.json",
            "\"slots\":9000,\"once\"",
            "\"slots\":9001,\"once\"",
            "redis: 9001 slots, 9000 in all classes",
        ),
        (
            "chaos-redis.json",
            "\"repeat\":95,",
            "\"repeat\":94,",
            "redis: 94 repeat, 95 counted by class; redis: 94 repeat, 95 explained or unexplained",
        ),
        ("chaos-redis.json", "\"violations\":[]", "\"violations\":[{}]", "redis: 1 violations"),
        ("simulation.json", "\"broken\":0", "\"broken\":3", "simulation: 3 worlds broken"),
        ("simulation.json", "\"broken\":0", "\"broken\":[\"a\"]", "simulation: 1 worlds broken"),
        ("model.jsonl", "[\"I5\",\"I2\"]", "[\"I2\"]", "model: claim without idempotence was not caught"),
        ("simulation.json", "\"done is final\"", "\"\"", "simulation: done overwritten was not caught"),
        ("simulation.json", "\"done is final\"", "null", "simulation: done overwritten was not caught"),
        ("simulation.json", "\"max\":7.0", "\"max\":9.0", "simulation: a recovery took 9 s of 8 s"),
        (
            "simulation.json",
            "\"disagreements\":0",
            "\"disagreements\":2",
            "simulation: the checker of journals disagrees on 2 worlds",
        ),
        (
            "simulation.json",
            "\"worlds\":431",
            "\"worlds\":12",
            "too little was tried: 12 of 200 worlds judged by their journals",
        ),
        ("simulation.json", "\"fresh\":[7000,7500],", "", "too little was tried: no world was of a fresh seed"),
        ("speed.json", "6543.2", "4999.4", "simulation: 4999 of 5000 slots a second on one core"),
        ("speed.json", "200031", "31", "too little was timed: 31 of 200000 simulated slots"),
        ("simulation.json", "12345678", "9999999", "too little was tried: 9999999 of 10000000 simulated slots"),
    ] {
        let page = page(spoilt(part, from, to).path());
        let opening = page.split("## How to read it").next().unwrap();
        assert!(opening.contains(&format!("**Something is wrong:** {said}.")), "{page}");
    }
    let page = page(spoilt("chaos-redis.json", "\"violations\":[]", "\"violations\":[{}]").path());
    assert!(page.contains("Real servers: **1** unexplained or in violation in 10,640 slots."), "{page}");
    assert!(page.contains("| redis | 300 | – |"), "no rate where something is wrong: {page}");
}
