//! The folder of one chaos run: its files by name. It stays when the run fails.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::chaos::workload;

pub(super) struct Folder {
    path: PathBuf,
    keep: bool,
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl Folder {
    /// A fresh one, with what the commands need.
    pub(super) fn new(name: &str) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("chaos-{name}-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(path.join("alive")).unwrap();
        std::fs::create_dir(path.join("logs")).unwrap();
        std::fs::create_dir(path.join("locks")).unwrap();
        std::fs::write(path.join("work.sh"), workload::SCRIPT).unwrap();
        std::fs::write(path.join("work.jsonl"), "").unwrap();
        std::fs::write(path.join("faults.jsonl"), "").unwrap();
        std::fs::write(path.join("outside.toml"), "").unwrap();
        let made = std::process::Command::new("mkfifo").arg(path.join("nap")).status().unwrap();
        assert!(made.success(), "mkfifo");
        Self { path, keep: true }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    /// Nothing failed: it may go.
    pub(super) fn is_not_needed(&mut self) {
        self.keep = false;
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
