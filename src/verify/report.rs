//! What was found, for people and for programs.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::verify::explain::seconds;
use crate::verify::history::name;
use crate::verify::story::Story;

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

/// What was found. The fields of its JSON are stable; spans are in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Slots that were judged.
    pub slots: usize,
    /// Each of these, as commands take it; not in the JSON.
    #[serde(skip)]
    pub judged: Vec<String>,
    /// Of these, slots that no fault that was told of came near.
    pub undisturbed: usize,
    /// Slots that are not over where the journals end: not judged.
    pub open: usize,
    /// Slots that were done by nodes whose journals are not given: not judged. Whoever gave all journals can fail on them.
    pub elsewhere: usize,
    /// How many slots are of each class.
    pub classes: BTreeMap<&'static str, Tally>,
    /// Slots that nothing explains.
    pub unexplained: Vec<Finding>,
    /// What may never be.
    pub violations: Vec<Finding>,
    /// Slots that were not done once, and why.
    pub explained: Vec<Explained>,
    /// How long it took until another attempt began.
    pub recovery: Recovery,
    /// With nothing unexplained and nothing violated in n slots the true rate is below 3/n, at 95 %; none for fewer than
    /// three slots, or when something is wrong.
    pub rate_below: Option<f64>,
    /// The same with the undisturbed slots as n: those that no fault can excuse.
    pub undisturbed_rate_below: Option<f64>,
    /// What whoever reads this should know of the files.
    pub notes: Vec<String>,
}

/// Slots of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// All.
    pub slots: usize,
    /// Of these, explained.
    pub explained: usize,
    /// Of these, not.
    pub unexplained: usize,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule that is broken, or the class of a slot that nothing explains.
    pub rule: &'static str,
    /// The slot, as commands take it.
    pub slot: String,
    /// What is wrong.
    pub message: String,
    /// The lines that show it: `file:line: text`.
    pub lines: Vec<String>,
}

/// A slot that was not done once, for reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// What became of it.
    pub class: Class,
    /// The slot, as commands take it.
    pub slot: String,
    /// Each reason.
    pub why: Vec<String>,
}

/// How long it took until another attempt began.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Recovery {
    /// After a node died: from its death, or its last line, until the next attempt was started.
    pub crash: Latency,
    /// After a failure: from when the store knew of it, until the next attempt was started.
    pub failure: Latency,
}

/// One recovery.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// The slot, as commands take it.
    pub slot: String,
    /// How long it took.
    pub took_s: f64,
    /// How long it may take by the protocol, with the allowance.
    pub bound_s: f64,
    /// The one through the other; above 1 is a violation.
    pub ratio: f64,
}

/// Some spans, in seconds; only those that no other fault excuses.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// How many.
    pub count: usize,
    /// The median.
    pub p50_s: Option<f64>,
    /// The 99th percentile: the nearest rank.
    pub p99_s: Option<f64>,
    /// The longest.
    pub max_s: Option<f64>,
    /// The largest part of its bound that any of them took; above 1 is a violation.
    pub worst_ratio: Option<f64>,
    /// Each of them, the shortest first.
    pub samples: Vec<Sample>,
}

impl Latency {
    pub(super) fn add(&mut self, slot: String, took: Duration, bound: Duration) {
        let (took_s, bound_s) = (took.as_secs_f64(), bound.as_secs_f64());
        self.samples.push(Sample { slot, took_s, bound_s, ratio: took_s / bound_s });
    }

    fn conclude(&mut self) {
        self.samples.sort_by(|a, b| a.took_s.total_cmp(&b.took_s));
        self.count = self.samples.len();
        let rank = |percent: usize| self.samples.get((self.count * percent).div_ceil(100).saturating_sub(1));
        let span = |percent| rank(percent).map(|sample| sample.took_s);
        (self.p50_s, self.p99_s, self.max_s) = (span(50), span(99), span(100));
        self.worst_ratio = self.samples.iter().map(|sample| sample.ratio).max_by(f64::total_cmp);
    }
}

impl Report {
    /// Nothing is unexplained and nothing is violated.
    pub fn is_clean(&self) -> bool {
        self.unexplained.is_empty() && self.violations.is_empty()
    }

    /// How many slots are of a class.
    pub fn tally(&self, class: Class) -> Tally {
        self.classes.get(class.as_str()).copied().unwrap_or_default()
    }

    pub(super) fn tally_mut(&mut self, class: Class) -> &mut Tally {
        self.classes.entry(class.as_str()).or_default()
    }

    /// Adds up.
    pub(super) fn conclude(&mut self) {
        for class in [Class::Once, Class::Repeat, Class::Overlap, Class::Lost] {
            self.tally_mut(class);
        }
        self.slots = self.classes.values().map(|tally| tally.slots).sum();
        self.recovery.crash.conclude();
        self.recovery.failure.conclude();
        (self.rate_below, self.undisturbed_rate_below) = (self.rate_of(self.slots), self.rate_of(self.undisturbed));
    }

    fn rate_of(&self, slots: usize) -> Option<f64> {
        let known = self.is_clean() && slots >= 3;
        u32::try_from(slots).ok().filter(|_| known).map(|slots| 3.0 / f64::from(slots))
    }

    fn conclusion(&self) -> String {
        let (slots, unexplained) = (self.slots, self.unexplained.len());
        match self.rate_below {
            Some(rate) => {
                format!("0 unexplained in {} => rate < 3/{slots} = {rate:.2e} at 95 %", counted(slots, "slot"))
            }
            None => format!("{unexplained} unexplained in {}", counted(slots, "slot")),
        }
    }
}

/// So many of it.
fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<8} {:>7} {:>10} {:>12}", "CLASS", "SLOTS", "EXPLAINED", "UNEXPLAINED")?;
        for class in [Class::Once, Class::Repeat, Class::Overlap, Class::Lost] {
            let Tally { slots, explained, unexplained } = self.tally(class);
            writeln!(f, "{:<8} {slots:>7} {explained:>10} {unexplained:>12}", class.as_str())?;
        }
        if self.open > 0 {
            let are = if self.open == 1 { "is" } else { "are" };
            writeln!(f, "{} {are} not over where the journals end: not judged", counted(self.open, "slot"))?;
        }
        latency(f, "crash", &self.recovery.crash)?;
        latency(f, "failure", &self.recovery.failure)?;
        for (kind, findings) in [("unexplained", &self.unexplained), ("violation", &self.violations)] {
            for Finding { rule, slot, message, lines } in findings {
                writeln!(f, "\n{kind}: {slot}: {rule}: {message}")?;
                lines.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
            }
        }
        for Explained { class, slot, why } in &self.explained {
            writeln!(f, "\nexplained: {slot}: {}", class.as_str())?;
            why.iter().try_for_each(|why| writeln!(f, "  {why}"))?;
        }
        for note in &self.notes {
            writeln!(f, "\nnote: {note}")?;
        }
        let (slots, undisturbed) = (self.slots, self.undisturbed);
        if undisturbed < slots {
            let rate = self.undisturbed_rate_below;
            let rate = rate.map_or(String::new(), |rate| format!(" => rate < 3/{undisturbed} = {rate:.2e} at 95 %"));
            writeln!(f, "\n{undisturbed} of {slots} slots had no injected fault near{rate}")?;
        }
        writeln!(f, "\n{}; {}", self.conclusion(), counted(self.violations.len(), "violation"))
    }
}

fn latency(f: &mut fmt::Formatter<'_>, after: &str, latency: &Latency) -> fmt::Result {
    let shown = |value| seconds(Duration::try_from_secs_f64(value).unwrap_or_default());
    let span = |value: Option<f64>| value.map_or("-".to_owned(), shown);
    let (p50, p99, max) = (span(latency.p50_s), span(latency.p99_s), span(latency.max_s));
    let worst = latency.worst_ratio.map_or("-".to_owned(), |ratio| format!("{:.0} %", ratio * 100.0));
    let count = latency.count;
    writeln!(
        f,
        "next attempt after a {after}: {count} seen, p50 {p50}, p99 {p99}, max {max}, at most {worst} of its bound"
    )
}

/// A slot breaks a rule.
pub(super) fn finding<'a>(
    rule: &'static str,
    story: &Story,
    message: String,
    lines: impl IntoIterator<Item = &'a String>,
) -> Finding {
    Finding { rule, slot: name(&story.slot), message, lines: lines.into_iter().cloned().collect() }
}
