//! The examples of docs/library.md run, and do what they say. `cargo test` builds them before it runs this.

use std::collections::BTreeMap;
use std::process::Command;

/// Runs an example to its end; its stdout.
fn example(name: &str) -> String {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples").join(name);
    let output = Command::new(&path).output().unwrap_or_else(|error| {
        panic!("{}: {error}; `cargo test` without --test builds it, or `cargo build --examples`", path.display())
    });
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{name}: {}\n{said}{}", output.status, String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
fn three_replicas_of_a_service_do_each_slot_once() {
    let said = example("guard");
    let mut done: BTreeMap<&str, u32> = BTreeMap::new();
    for line in said.lines().filter(|line| line.contains(" pushed ")) {
        *done.entry(line.split(": ").next().unwrap()).or_default() += 1;
    }
    assert!(done.len() >= 3, "{said}");
    assert!(done.values().all(|times| *times == 1), "{said}");
}

#[test]
fn a_late_write_is_refused_by_its_fence() {
    let said = example("fenced_write");
    assert!(said.contains("refused: fence ") && said.ends_with("the report says \"right\"\n"), "{said}");
}

#[test]
fn a_holder_that_stood_still_is_refused_by_the_resource_and_nobody_holds_beside_another() {
    let said = example("locks");
    for line in [
        "beside two readers: busy: web",
        "one of two permits: busy: web",
        "locks of a migration: busy: deploy",
        "web is back, and InDoubt",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(said.contains("the write of web is refused: fence "), "{said}");
}
