//! What stands in the queues of locks when everybody has left: nothing, once the TTL of those who died is over.

use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use super::folder::Folder;
use crate::wait;

/// The longest TTL that anybody asks for, in seconds.
const LONGEST_TTL_S: f64 = 3.0;

/// The entries that stand though they should not, in words. Those that last for no longer than their TTL are waited for: by the
/// store's clock, however slow the machine is.
pub(super) fn standing(folder: &Folder, url: &str) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let entries = listed(folder, url);
        let beyond = |entry: &&(String, f64)| entry.1 > LONGEST_TTL_S || begun.elapsed() > wait::LIMIT;
        let wrong: Vec<String> = entries.iter().filter(beyond).map(|(words, _)| words.clone()).collect();
        if entries.is_empty() || !wrong.is_empty() {
            return wrong;
        }
        wait::let_pass(std::time::Duration::from_millis(100));
    }
}

/// Every entry of every lock, and for how long it lasts.
fn listed(folder: &Folder, url: &str) -> Vec<(String, f64)> {
    let locks = wait::until("the store lists its locks", || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronward"));
        command.args(["locks", "--all", "--json", "--config", "outside.toml", "--store", url]);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let told = command.current_dir(folder.path()).stdin(Stdio::null()).stderr(Stdio::null()).output().unwrap();
        serde_json::from_slice::<Vec<Value>>(&told.stdout).ok().filter(|_| told.status.success())
    });
    let mut entries = Vec::new();
    for lock in &locks {
        for entry in lock["queue"].as_array().unwrap() {
            entries
                .push((format!("{}: {entry}", lock["lock"].as_str().unwrap()), entry["remaining_s"].as_f64().unwrap()));
        }
    }
    entries
}
