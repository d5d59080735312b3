//! What the nodes of a world write into their journals, and what is done to them: handed to the
//! checker of journals ([`cronward::verify`]), which knows nothing of the world. The lines are those of `observe::journal`,
//! of the same events; nothing is told here that a node does not know.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use cronward::event::Event;
use cronward::job::NodeName;
use cronward::observe::journal::Line;
use cronward::slot::Slot;
use cronward::verify::{self, Finding, InjectedFault, Inputs, Report};

use crate::message::Process;

/// What the checker makes of the journals of a world.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The first thing that is wrong by them, in words.
    pub text: Option<String>,
    /// All of it.
    pub report: Report,
}

/// The journals of a world.
#[derive(Debug, Default)]
pub(super) struct Journals {
    files: BTreeMap<usize, String>,
    faults: Vec<InjectedFault>,
}

/// What the checker is told of a world besides what its nodes wrote.
#[derive(Debug)]
pub(super) struct Besides {
    /// What clocks that are well differ by, what messages take, and what lines leave out of an instant.
    pub(super) allowance: Duration,
    /// The lines of the recorder.
    pub(super) recorded: String,
    /// Copies of messages came: that of a close, for which nobody waits, can be the one that records the verdict. Then nobody
    /// tells it.
    pub(super) copied: bool,
}

impl Journals {
    /// A node writes a line, by the clock of its machine.
    pub(super) fn write(
        &mut self,
        (by, node): (Process, &NodeName),
        wall: DateTime<Utc>,
        slot: Option<&Slot>,
        event: &Event,
    ) {
        let line = Line::of(wall, (node, &format!("{node}.{}", by.start)), slot, event);
        let file = self.files.entry(by.node).or_default();
        file.push_str(&line.text());
        file.push('\n');
    }

    /// Something was done to the cluster.
    pub(super) fn enter(&mut self, fault: InjectedFault) {
        self.faults.push(fault);
    }

    /// What had struck is over, if it was not before.
    pub(super) fn lift(&mut self, kind: &str, now: DateTime<Utc>) {
        let open =
            self.faults.iter_mut().filter(|fault| fault.kind == kind && fault.until.is_some_and(|until| until > now));
        open.for_each(|fault| fault.until = Some(now));
    }

    /// What the checker makes of it all.
    pub(super) fn check(self, besides: &Besides) -> Judged {
        let Self { files, faults } = self;
        let mut inputs = Inputs::default();
        inputs.allowance = besides.allowance;
        let read = |inputs: &mut Inputs| {
            for (node, text) in &files {
                inputs.journal(&format!("n{}", node + 1), text)?;
            }
            inputs.recorder("runs", &besides.recorded)
        };
        if let Err(malformed) = read(&mut inputs) {
            return Judged { text: Some(malformed.to_string()), report: Report::default() };
        }
        faults.into_iter().for_each(|fault| inputs.fault(fault));
        let report = verify::check(inputs);
        let untold = |found: &&Finding| besides.copied && found.rule == "no-verdict";
        let first = report.unexplained.iter().chain(&report.violations).find(|found| !untold(found));
        let text = first.map(|found| format!("{} of {}: {}", found.rule, found.slot, found.message));
        Judged { text, report }
    }
}
