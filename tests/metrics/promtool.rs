//! Prometheus' `promtool`, which judges. Where it is missing the test fails: `scripts/install-test-servers.sh` installs it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What promtool says of its input, if it finds fault with it.
pub(crate) fn objections(arguments: &[&str], input: &str) -> Option<String> {
    let mut command = Command::new("promtool");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child =
        command.spawn().unwrap_or_else(|error| panic!("promtool: {error}; run scripts/install-test-servers.sh"));
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let _ = writer.join().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    (!status.success()).then_some(said)
}

/// What it says of the text of metrics.
pub(crate) fn on_metrics(text: &str) -> Option<String> {
    objections(&["check", "metrics"], text)
}

/// What it says of some expressions.
pub(crate) fn on_expressions(expressions: &[String]) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut rules = "groups:\n  - name: panels\n    rules:\n".to_owned();
    for (number, expression) in expressions.iter().enumerate() {
        let quoted = serde_json::to_string(expression).unwrap();
        writeln!(rules, "      - record: panel:{number}\n        expr: {quoted}").unwrap();
    }
    let file = folder.path().join("rules.yaml");
    std::fs::write(&file, rules).unwrap();
    objections(&["check", "rules", file.to_str().unwrap()], "")
}

/// A file of the repository.
pub(crate) fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn promtool_finds_fault_with_what_is_wrong() {
    let said = on_metrics("# TYPE a counter\na 1\n").unwrap();
    assert!(said.contains("_total"), "{said}");
    assert!(on_metrics("a{b=\"c} 1\n").is_some());
    assert!(on_expressions(&["sum(".to_owned()]).is_some());
    assert_eq!(on_expressions(&["sum(a) > \"\"".replace("\"\"", "1")]), None);
}
