//! SQLite under chaos: a file has no link to spoil and no server to kill.

use std::path::Path;

use super::backend::Backend;
use super::fault::{LinkFault, ServerFault};

pub(super) struct Sqlite(String);

/// There are none.
pub(super) const FAULTS: &[ServerFault] = &[];

impl Sqlite {
    pub(super) fn new(folder: &Path) -> Self {
        Self(format!("sqlite:{}", folder.join("cronward.sqlite").display()))
    }
}

impl Backend for Sqlite {
    fn name(&self) -> String {
        "sqlite".to_owned()
    }

    fn url(&self, _node: usize) -> String {
        self.0.clone()
    }

    fn spoil(&mut self, _node: usize, fault: LinkFault, _pick: u64) {
        panic!("a file has no link for {fault:?}");
    }

    fn mend(&mut self, _node: usize) {}

    fn begin(&mut self, fault: ServerFault, _pick: u64) {
        panic!("a file has no server for {fault:?}");
    }

    fn end(&mut self, _fault: ServerFault) {}
}
