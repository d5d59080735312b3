//! The judgement of every slot, and of the whole.

use crate::slot::Verdict;
use crate::verify::explain::{self, Reason};
use crate::verify::history::{History, name};
use crate::verify::inputs::Inputs;
use crate::verify::report::{Class, Explained, Finding, Report};
use crate::verify::story::Story;
use crate::verify::{recovery, rules};

/// The judgement of one slot.
struct Judgement {
    class: Class,
    why: Vec<String>,
    /// What nothing explains.
    unexplained: Vec<String>,
    /// Runs that follow on another one because the store lost what it knew, and for no other reason.
    after_loss: usize,
}

/// Judges all that happened.
pub fn check(inputs: Inputs) -> Report {
    let history = History::of(inputs);
    let mut report = Report { notes: history.notes.clone(), ..Report::default() };
    let mut nobodys = 0_usize;
    for story in history.stories.values() {
        match standing(&history, story) {
            Judgeable::Open => report.open += 1,
            Judgeable::Elsewhere => report.elsewhere += 1,
            Judgeable::Nobodys => {
                nobodys += 1;
                continue;
            }
            Judgeable::Over => {
                let judgement = judge(&history, story);
                report.violations.extend(too_many_repeats(&history, story, judgement.after_loss));
                report.undisturbed += usize::from(history.is_undisturbed(story));
                enter(&mut report, story, judgement);
                recovery::measure(&history, story, &mut report);
            }
        }
        report.violations.extend(rules::of_slot(&history, story));
    }
    report.violations.extend(rules::of_all(&history));
    note(&history, nobodys, &mut report);
    report.conclude();
    report
}

/// What was not judged, and what is missing.
fn note(history: &History, nobodys: usize, report: &mut Report) {
    let unjudged = [
        (report.elsewhere, "slots were done by nodes whose journals are not among these: not judged"),
        (nobodys, "slots were over before a node was there that planned them, and one asked for them: not judged"),
    ];
    let unjudged = unjudged.into_iter().filter(|(slots, _)| *slots > 0);
    report.notes.extend(unjudged.map(|(slots, whose)| format!("{slots} {whose}")));
    for instance in history.instances.iter().filter(|instance| !instance.dropped.is_empty()) {
        report.notes.push(format!("lines of {} ({}) are missing: its disk failed", instance.node, instance.id));
    }
}

/// Whether a slot can be judged.
enum Judgeable {
    Over,
    Open,
    /// Done by a node whose journal is not there.
    Elsewhere,
    /// No node was there to do it: one whose clock is behind asked for it afterwards.
    Nobodys,
}

fn standing(history: &History, story: &Story) -> Judgeable {
    let known = |node| history.instances.iter().any(|instance| instance.node == node);
    if story.runs.is_empty() && story.done && story.done_by.clone().is_some_and(|node| !known(node)) {
        return Judgeable::Elsewhere;
    }
    if story.is_nobodys(history.nobody_planned(story)) {
        return Judgeable::Nobodys;
    }
    let over = story.done || !story.verdicts.is_empty() || history.is_over(story);
    if over { Judgeable::Over } else { Judgeable::Open }
}

fn judge(history: &History, story: &Story) -> Judgement {
    let mut judgement = Judgement { class: Class::Once, why: Vec::new(), unexplained: Vec::new(), after_loss: 0 };
    let compared = story.runs.len().min(MOST_COMPARED);
    if compared < story.runs.len() {
        judgement.unexplained.push(format!("{} runs, of which {compared} were compared", story.runs.len()));
    }
    for (index, later) in story.runs.iter().take(compared).enumerate() {
        for (before, earlier) in story.runs.iter().take(index).enumerate() {
            let (first, second) = (earlier.words(), later.words());
            let (class, said, why) = if let Some(how_long) = explain::common(history, story, earlier, later) {
                let said = format!("{first} and {second} ran at the same time {how_long}");
                (Class::Overlap, said, explain::overlap(history, story, earlier, later))
            } else {
                let said = format!("{second} was started after {first}");
                (Class::Repeat, said, explain::again(history, story, earlier, later))
            };
            let follows = before + 1 == index;
            judgement.after_loss += usize::from(follows && why.as_ref().is_some_and(Reason::is_loss_of_data));
            judgement.enter(class, said, why.map(|why| why.words()));
        }
    }
    let is_done = story.done || story.runs.iter().any(super::run::JournalRun::succeeded);
    if !is_done {
        let verdict = story.verdict().map_or("no verdict", Verdict::as_str);
        let said = format!("not done in {} runs, {verdict}", story.runs.len());
        judgement.enter(Class::Lost, said, explain::lost(history, story));
    }
    judgement
}

/// A loss of data costs a slot one repeat at the most.
fn too_many_repeats(history: &History, story: &Story, after_loss: usize) -> Option<Finding> {
    let last = story.runs.last().filter(|_| after_loss > 0)?;
    let losses = Some(history.losses(story, last.start)).filter(|losses| *losses < after_loss)?;
    let message =
        format!("{after_loss} runs are explained only by what the store lost, and it lost that {losses} times");
    let lines = story.runs.iter().flat_map(|run| &run.lines).cloned().collect();
    Some(Finding { rule: "too-many-repeats", slot: name(&story.slot), message, lines })
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
    let Judgement { class, why, unexplained, .. } = judgement;
    report.judged.push(name(&story.slot));
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
