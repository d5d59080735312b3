//! The drop-ins of deploy/systemd that hand credentials to the daemon: what their comments write into `jobs.toml` finds them, in the unit and in
//! an administrator's shell. That systemd reads the files is asked by `make units`.

use std::path::Path;

use cronward::config::{Environment, lint};
use tempfile::TempDir;

const JOB: &str = "[defaults]\nnotify = [\"ops\"]\n[jobs.a]\nschedule = \"0 * * * *\"\ncommand = [\"true\"]\n";
const SINK: &str = "[notify.ops]\ntype = \"exec\"\ncommand = [\"true\"]\n";

/// The lines of a drop-in's comment that are for `jobs.toml`.
fn example(text: &str) -> String {
    text.lines().filter_map(|line| line.strip_prefix("#   ")).map(|line| format!("{line}\n")).collect()
}

/// What a drop-in hands over: the name of each credential, and its original.
fn credentials(text: &str) -> Vec<(&str, &str)> {
    text.lines().filter_map(|line| line.strip_prefix("LoadCredential=")?.split_once(':')).collect()
}

/// Every finding in what a drop-in's example means.
fn findings(example: &str, env: &Environment) -> Vec<String> {
    let sink = if example.contains("[notify.ops]") { "" } else { SINK };
    let report = match lint("jobs.toml", format!("{example}{sink}{JOB}"), env) {
        Ok((_, report)) | Err(report) => report,
    };
    report.findings.into_iter().map(|finding| finding.message).collect()
}

#[test]
fn a_credential_is_found_where_the_drop_in_says_in_the_unit_and_in_a_shell() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/systemd/cronward.service.d");
    let mut handed_over = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let (given, originals) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        for (name, original) in credentials(&text) {
            let (folder, file) = original.rsplit_once('/').unwrap();
            let documented = format!("\"${{CREDENTIALS_DIRECTORY:-{folder}}}/{name}\"");
            assert!(example(&text).contains(&documented) && name == file, "{documented} is not in: {text}");
            for folder in [&given, &originals] {
                std::fs::write(folder.path().join(name), "redis://127.0.0.1/\n").unwrap();
            }
            handed_over.push(documented);
        }
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let here = example(&text).replace("/etc/cronward", &originals.path().display().to_string());
        let unit = Environment::new(now).with("CREDENTIALS_DIRECTORY", &given.path().display().to_string());
        assert_eq!(findings(&here, &Environment::new(now)), Vec::<String>::new(), "in a shell: {here}");
        std::fs::remove_dir_all(originals.path()).unwrap();
        assert_eq!(findings(&here, &unit), Vec::<String>::new(), "in the unit: {here}");
    }
    assert!(handed_over.len() >= 3, "{handed_over:?}");
    let pages = ["docs/operations.md", "docs/notifications.md", "docs/getting-started.md", "deploy/systemd/README.md"];
    for page in pages {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap();
        for line in text.lines().filter(|line| line.contains("${CREDENTIALS_DIRECTORY")) {
            assert!(handed_over.iter().any(|documented| line.contains(documented)), "{page}: {line}");
        }
    }
}
