//! `cronward doctor --json` before a real store: what it ends with, and what is not well.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a test says what it expects; no test uses all of it"
)]

use std::process::Command;

use cronward::store::Store;
use serde_json::Value;

/// A file that gives it two seconds for each.
const TWO_SECONDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots/files/two-seconds.toml");

/// A file that gives a store on a busy machine time to answer.
const PATIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots/files/patient.toml");

/// What it ends with, and what is not well as `check severity`, with the whole finding.
#[derive(Debug)]
pub struct Told {
    pub code: i32,
    pub bad: Vec<(String, Value)>,
    /// All of it.
    pub view: Value,
}

impl Told {
    /// What is not well. A busy machine may be slow to answer: that is true, and no fault of the server's.
    pub fn names(&self) -> Vec<&str> {
        let names = self.bad.iter().map(|(name, _)| name.as_str());
        names.filter(|name| *name != "latency warning").collect()
    }

    pub fn fix_of(&self, name: &str) -> &str {
        self.of(name)["fix"].as_str().unwrap()
    }

    pub fn found_of(&self, name: &str) -> &str {
        self.of(name)["found"].as_str().unwrap()
    }

    fn of(&self, name: &str) -> &Value {
        let found = self.bad.iter().find(|(known, _)| known == name);
        &found.unwrap_or_else(|| panic!("no {name} in {:?}", self.bad)).1
    }

    /// What was found of this, well or not.
    pub fn found(&self, check: &str) -> Vec<&str> {
        let findings = self.view["findings"].as_array().unwrap().iter();
        findings.filter(|finding| finding["check"] == check).map(|finding| finding["found"].as_str().unwrap()).collect()
    }
}

/// Looks at a store, with the time limits that it has unless told otherwise.
pub async fn hasty(url: &str) -> Told {
    ask(vec!["doctor", "--json", "--store", url]).await
}

/// Looks at a store that has two seconds for each answer.
pub async fn within_two_seconds(url: &str) -> Told {
    ask(vec!["doctor", "--json", "--config", TWO_SECONDS, "--store", url]).await
}

/// Looks at a store, with time to answer.
pub async fn doctor(url: &str) -> Told {
    ask(vec!["doctor", "--json", "--config", PATIENT, "--store", url]).await
}

/// Nothing of what was tried is left where people look.
pub async fn lists_nothing(store: &dyn Store) {
    assert_eq!(store.jobs().await.unwrap(), []);
    assert_eq!((store.nodes().await.unwrap().1, store.pauses().await.unwrap()), (vec![], vec![]));
}

async fn ask(args: Vec<&str>) -> Told {
    let args: Vec<String> = args.into_iter().map(str::to_owned).collect();
    let run = move || Command::new(env!("CARGO_BIN_EXE_cronward")).args(args).output().unwrap();
    // A proxy in this process goes on meanwhile.
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    assert!(!String::from_utf8_lossy(&output.stdout).contains("secret"), "{output:?}");
    let view: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let bad = view["findings"].as_array().unwrap().iter().filter(|finding| finding["severity"] != "ok");
    let name = |finding: &Value| format!("{} {}", finding["check"], finding["severity"]).replace('"', "");
    let bad = bad.map(|finding| (name(finding), finding.clone())).collect();
    Told { code: output.status.code().unwrap(), bad, view }
}
