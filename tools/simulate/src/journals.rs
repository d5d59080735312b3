//! What the nodes of a world write into their journals, what its commands record, and what is done to them: handed to the
//! checker of journals ([`cronward::verify`]), which knows nothing of the world. The lines are those of `observe::journal`,
//! of the same events; nothing is told here that a node does not know.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use chrono::{DateTime, SubsecRound, Utc};
use cronward::event::Event;
use cronward::observe::journal::Line;
use cronward::slot::Slot;
use cronward::verify::{self, Finding, Inputs, Report};

use crate::daemon::Desk;
use crate::engine::Time;
use crate::faults::Fault;
use crate::history::Run;
use crate::message::Process;
use crate::nature::Nature;

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
    faults: Vec<verify::Fault>,
}

impl Desk<'_> {
    /// Something happened to the node.
    pub(super) fn tell(&mut self, event: &Event) {
        self.nature.write(self.process, self.uncorrected.wall, None, event);
    }
}

impl Nature {
    /// A node writes a line, by the clock of its machine.
    pub(super) fn write(&mut self, by: Process, wall: DateTime<Utc>, slot: Option<&Slot>, event: &Event) {
        let Some(journals) = &mut self.journals else { return };
        let Some(node) = self.scenario.nodes.get(by.node) else { return };
        let line = Line::of(wall, (node, &format!("{node}.{}", by.start)), slot, event);
        let file = journals.files.entry(by.node).or_default();
        file.push_str(&line.text());
        file.push('\n');
    }

    /// Something was done to the cluster, until then.
    pub(super) fn enter(&mut self, kind: &str, target: &str, until: Time) {
        // To the millisecond, as every line.
        let (at, until) = (self.instant().trunc_subsecs(3), self.scenario.instant(until.min(self.scenario.end)));
        if let Some(journals) = &mut self.journals {
            let (kind, target) = (kind.to_owned(), target.to_owned());
            journals.faults.push(verify::Fault { at, kind, target, until: Some(until.max(at)) });
        }
    }

    /// What had struck is over, if it was not before.
    pub(super) fn lift(&mut self, kind: &str) {
        let now = self.instant();
        let faults = self.journals.iter_mut().flat_map(|journals| &mut journals.faults);
        let open = faults.filter(|fault| fault.kind == kind && fault.until.is_some_and(|until| until > now));
        open.for_each(|fault| fault.until = Some(now));
    }

    /// Something was done to a node, until then.
    pub(super) fn enter_node(&mut self, kind: &str, node: usize, until: Time) {
        if let (true, Some(name)) = (self.journals.is_some(), self.scenario.nodes.get(node).cloned()) {
            self.enter(kind, name.as_str(), until);
        }
    }

    /// Something befell a message of a node, about a slot or about nothing in particular; what follows from it is over then.
    pub(super) fn enter_message(&mut self, kind: &str, (node, slot): (usize, Option<&Slot>), until: Time) {
        match slot {
            Some(slot) if self.journals.is_some() => self.enter(kind, &slot.to_string(), until),
            _ => self.enter_node(kind, node, until),
        }
    }

    /// What the checker makes of it all; none where nothing was written.
    pub(super) fn check_journals(&mut self) -> Option<Judged> {
        let Journals { files, faults } = self.journals.take()?;
        let mut inputs = Inputs::default();
        inputs.allowance = self.allowance();
        let read = |inputs: &mut Inputs| {
            for (node, text) in &files {
                inputs.journal(&format!("n{}", node + 1), text)?;
            }
            inputs.recorder("runs", &self.recorded())
        };
        if let Err(malformed) = read(&mut inputs) {
            return Some(Judged { text: Some(malformed.to_string()), report: Report::default() });
        }
        faults.into_iter().for_each(|fault| inputs.fault(fault));
        let report = verify::check(inputs);
        // A copy of a close that nobody waits for can be the one that records the verdict: then nobody tells it.
        let copied = self.scenario.mix.has(Fault::Duplicate);
        let untold = |found: &&Finding| copied && found.rule == "no-verdict";
        let first = report.unexplained.iter().chain(&report.violations).find(|found| !untold(found));
        let text = first.map(|found| format!("{} of {}: {}", found.rule, found.slot, found.message));
        Some(Judged { text, report })
    }

    /// What clocks that are well differ by, what messages take, and what lines leave out of an instant.
    fn allowance(&self) -> Duration {
        self.scenario.network.most * 4 + self.scenario.end / 10_000 + Duration::from_millis(2)
    }

    /// What the commands recorded, on the one clock that is right. One that is killed records no end.
    fn recorded(&self) -> String {
        let mut text = String::new();
        for (story, index, run) in self
            .stories
            .values()
            .flat_map(|story| story.runs.iter().filter_map(move |index| Some((story, *index, self.runs.get(*index)?))))
        {
            let millis = |at: Time| self.scenario.instant(at).timestamp_millis();
            let before = story.runs.iter().take_while(|other| **other != index);
            let met = before.filter_map(|other| self.runs.get(*other)).any(|other| other.overlaps(run));
            let end = run.ended.filter(|_| run.code.is_some()).map_or("null".to_owned(), |end| millis(end).to_string());
            let Some(node) = self.scenario.nodes.get(run.by.node) else { continue };
            let _ = writeln!(
                text,
                r#"{{"job":"{}","slot":"{}","attempt":{},"fence":{},"node":"{node}","pid":{index},"start_ms":{},"end_ms":{end},"overlap":{met}}}"#,
                story.slot.job(),
                story.slot.key(),
                if run.guarded { run.attempt } else { 0 },
                fence(&story.slot, run),
                millis(run.started),
            );
        }
        text
    }
}

fn fence(slot: &Slot, run: &Run) -> u64 {
    slot.fence(run.attempt).0
}
