//! The judgement of every slot, and of the whole.

use serde::Serialize;

use crate::slot::Verdict;
use crate::verify::explain;
use crate::verify::history::{History, name};
use crate::verify::inputs::Inputs;
use crate::verify::report::{Explained, Finding, Report};
use crate::verify::story::Story;
use crate::verify::{recovery, rules};

/// What became of a slot; the worst that is true of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// One run, and it is done.
    Once,
    /// More than one run, one after the other.
    Repeat,
    /// Two runs at the same time.
    Overlap,
    /// It had a tick and nobody did it.
    Lost,
}

/// The judgement of one slot.
struct Judgement {
    class: Class,
    why: Vec<String>,
    /// What nothing explains.
    unexplained: Vec<String>,
}

/// Judges all that happened.
pub fn check(inputs: Inputs) -> Report {
    let history = History::of(inputs);
    let mut report = Report { notes: history.notes.clone(), ..Report::default() };
    let mut elsewhere = 0_usize;
    for story in history.stories.values() {
        match standing(&history, story) {
            Standing::Open => report.open += 1,
            Standing::Elsewhere => elsewhere += 1,
            Standing::Over => {
                enter(&mut report, story, judge(&history, story));
                recovery::measure(&history, story, &mut report);
            }
        }
        report.violations.extend(rules::of_slot(&history, story));
    }
    report.violations.extend(rules::of_all(&history));
    if elsewhere > 0 {
        let whose = "slots were done by nodes whose journals are not among these: not judged";
        report.notes.push(format!("{elsewhere} {whose}"));
    }
    for instance in history.instances.iter().filter(|instance| instance.dropped) {
        report.notes.push(format!("lines of {} ({}) are missing: its disk failed", instance.node, instance.id));
    }
    report.conclude();
    report
}

/// Whether a slot can be judged.
enum Standing {
    Over,
    Open,
    /// Done by a node whose journal is not there.
    Elsewhere,
}

fn standing(history: &History, story: &Story) -> Standing {
    let known = |node| history.instances.iter().any(|instance| instance.node == node);
    if story.runs.is_empty() && story.done && story.done_by.clone().is_some_and(|node| !known(node)) {
        return Standing::Elsewhere;
    }
    let over = story.done || !story.verdicts.is_empty() || history.is_over(story);
    if over { Standing::Over } else { Standing::Open }
}

fn judge(history: &History, story: &Story) -> Judgement {
    let mut judgement = Judgement { class: Class::Once, why: Vec::new(), unexplained: Vec::new() };
    let compared = story.runs.len().min(MOST_COMPARED);
    if compared < story.runs.len() {
        judgement.unexplained.push(format!("{} runs, of which {compared} were compared", story.runs.len()));
    }
    for (index, later) in story.runs.iter().take(compared).enumerate() {
        for earlier in story.runs.iter().take(index) {
            let (first, second) = (earlier.words(), later.words());
            if let Some(how_long) = explain::common(history, earlier, later) {
                let said = format!("{first} and {second} ran at the same time {how_long}");
                judgement.enter(Class::Overlap, said, explain::overlap(history, story, earlier, later));
            } else {
                let said = format!("{second} was started after {first}");
                judgement.enter(Class::Repeat, said, explain::again(history, story, earlier, later));
            }
        }
    }
    let is_done = story.done || story.runs.iter().any(super::run::Run::succeeded);
    if !is_done {
        let verdict = story.verdict().map_or("no verdict", Verdict::as_str);
        let said = format!("not done in {} runs, {verdict}", story.runs.len());
        judgement.enter(Class::Lost, said, explain::lost(history, story));
    }
    judgement
}

/// Runs of one slot that are compared with each other: no job has more attempts.
const MOST_COMPARED: usize = crate::job::MAX_ATTEMPTS_LIMIT as usize;

/// Reasons that are written out for one slot; nobody reads more.
const MOST_SAID: usize = 40;

impl Judgement {
    fn enter(&mut self, class: Class, said: String, why: Option<String>) {
        self.class = self.class.max(class);
        match why {
            Some(why) if self.why.len() < MOST_SAID => self.why.push(format!("{said}: {why}")),
            None if self.unexplained.len() < MOST_SAID => self.unexplained.push(said),
            _ => {}
        }
    }
}

fn enter(report: &mut Report, story: &Story, judgement: Judgement) {
    let Judgement { class, why, unexplained } = judgement;
    let tally = report.tally_mut(class);
    tally.slots += 1;
    if !unexplained.is_empty() {
        tally.unexplained += 1;
        let (slot, lines) = (name(&story.slot), story.lines.clone());
        report.unexplained.push(Finding { rule: class.as_str(), slot, message: unexplained.join("; "), lines });
    } else if class != Class::Once {
        tally.explained += 1;
        report.explained.push(Explained { class, slot: name(&story.slot), why });
    }
}

impl Class {
    /// The word in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Repeat => "repeat",
            Self::Overlap => "overlap",
            Self::Lost => "lost",
        }
    }
}
