//! One change in words, for people and for programs: what will happen, how it is undone, why it was refused.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::admin::command_line::CommandLine;
use crate::admin::words::brief;
use crate::job::NodeName;
use crate::resource::LockEntry;
use crate::slot::{Holder, Token};

/// A verb and its object, in words.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// `reset`, `unlock`, `mark-done`, `pause`, `resume`, `trigger`, `forget`.
    pub(crate) verb: &'static str,
    /// The slot, the job or the lock.
    pub(crate) target: String,
    /// What will happen, as a question's beginning: "3 attempts no longer count".
    pub(crate) effect: String,
    /// Said where nothing had to be changed.
    pub(crate) needless: String,
    /// How it is taken back.
    pub(crate) undo: Undo,
    /// What told commands name: they go to the same store.
    pub(crate) line: CommandLine,
}

/// How a change is taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Undo {
    /// By this command.
    By(String),
    /// By none: why, and what to do instead.
    Not(String),
}

impl Undo {
    /// The command, or why there is none.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::By(text) | Self::Not(text) => text,
        }
    }
}

impl fmt::Display for Undo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::By(command) => write!(f, "to undo: {command}"),
            Self::Not(why) => f.write_str(why),
        }
    }
}

/// A node holds the slot: nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeldSlot {
    /// The slot.
    pub(crate) target: String,
    pub(crate) by: Holder,
    /// How long, unless it renews the lease.
    pub(crate) remaining: Duration,
    /// The command that takes the lease.
    pub(crate) unlock: String,
}

impl fmt::Display for HeldSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, by, remaining, unlock } = self;
        let (node, attempt, remaining) = (&by.node, by.attempt, brief(*remaining));
        write!(
            f,
            "{target} is held by node {node}, attempt {attempt}, for another {remaining} unless renewed: wait for it, or \
             release the lease with `{unlock}`"
        )
    }
}

impl Change {
    /// Why nothing was changed while a node holds the slot, with both ways out.
    pub(crate) fn held(&self, by: &Holder, remaining: Duration) -> HeldSlot {
        let target = self.target.clone();
        let unlock = self.line.command(format_args!("unlock {target}"));
        HeldSlot { target, by: by.clone(), remaining, unlock }
    }

    /// What came of it, for programs.
    pub(crate) fn view(&self, changed: bool, requests: Vec<RequestView>) -> ChangeView<'_> {
        let Self { verb, target, effect: _, needless: _, undo, line: _ } = self;
        ChangeView { verb, target, changed, undo: undo.as_str(), requests }
    }
}

/// What a verb did, for programs (docs/json.md).
#[derive(Debug, Serialize)]
pub(crate) struct ChangeView<'a> {
    /// `reset`, `unlock`, `mark-done`, `pause`, `resume`.
    verb: &'a str,
    /// The slot, the job or the lock.
    target: &'a str,
    /// False where it was so already.
    changed: bool,
    /// The command that takes it back, or why there is none.
    undo: &'a str,
    /// Of a lock: whoever was to be taken out of its queue.
    requests: Vec<RequestView>,
}

/// What became of a request that was to be taken out of the queue of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RequestEnd {
    /// It was taken out.
    Removed,
    /// It had gone already.
    Absent,
    /// The store did not answer: it may be out, or not.
    Unknown,
    /// It was left where it stands.
    #[serde(rename = "not_removed")]
    Left,
}

/// Such a request, for programs.
#[derive(Debug, Serialize)]
pub(crate) struct RequestView {
    token: Token,
    node: NodeName,
    result: RequestEnd,
}

impl RequestView {
    /// Of an entry of the queue.
    pub(crate) fn of(entry: &LockEntry, result: RequestEnd) -> Self {
        Self { token: entry.token, node: entry.by.node.clone(), result }
    }
}
