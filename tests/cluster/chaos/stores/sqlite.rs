//! SQLite under chaos: a file has no link to spoil and no server to kill.

use std::path::Path;
use std::time::Duration;

use crate::chaos::backend::{Backend, Bears};
use crate::chaos::fault::ServerFault;

pub(in crate::chaos) struct Sqlite(String);

pub(in crate::chaos) const BEARS: Bears =
    Bears { links: false, clocks: false, server: &[], rests: Duration::ZERO, forgets: false, locks: true };

impl Sqlite {
    pub(in crate::chaos) fn new(folder: &Path) -> Self {
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

    fn begin(&mut self, fault: ServerFault, _pick: u64) {
        panic!("a file has no server for {fault:?}");
    }

    fn end(&mut self, _fault: ServerFault) {}

    fn life(&self) -> String {
        self.0.clone()
    }
}
