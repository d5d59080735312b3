//! The language that rows are asked for in: `owner:billing state:failed tag:erp node:c nightly -tag:test`. All terms have to hold; a `-`
//! before one asks for its opposite; a word without a colon is part of the name or of the description; quotes keep blanks.

use crate::board::BoardRow;
use crate::slot::{SlotState, Verdict};

/// Bytes of a filter, and terms in it.
const LONGEST: usize = 512;
const MOST: usize = 16;

/// What `state:` takes: where the current slot stands, then how the job stands.
const STATES: [&str; 12] = [
    "pending", "running", "retrying", "done", "failed", "missed", "skipped", "failing", "late", "paused", "disabled",
    "orphaned",
];

/// What `state:` takes, in a row.
pub fn known_states(between: &str) -> String {
    STATES.join(between)
}

/// Which rows are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter(Vec<Term>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    not: bool,
    field: FilterField,
    /// In lower case.
    value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FilterField {
    Text,
    Job,
    Owner,
    Tag,
    Node,
    State,
}

const FIELDS: [(&str, FilterField); 5] = [
    ("job", FilterField::Job),
    ("owner", FilterField::Owner),
    ("tag", FilterField::Tag),
    ("node", FilterField::Node),
    ("state", FilterField::State),
];

/// A filter that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// It is too long.
    #[error("a filter has 512 bytes and 16 terms at the most")]
    TooLong,
    /// A quote has no end.
    #[error("a quote in the filter has no end: write a \" after the last word that belongs to it")]
    OpenQuote,
    /// There is no such field.
    #[error("{0:?} is nothing to filter by: write job:, owner:, tag:, node: or state:, or a word of the name")]
    Field(String),
    /// There is no such state.
    #[error("{0:?} is no state: write one of {known}", known = known_states(", "))]
    State(String),
    /// Nothing stands behind a field with its colon, or behind the sign that asks for the opposite.
    #[error("nothing stands behind {0} in the filter")]
    Empty(String),
}

impl Filter {
    /// Reads one; an empty text asks for every row.
    ///
    /// # Errors
    /// What is wrong with it, and what can be written instead.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        if text.len() > LONGEST {
            return Err(FilterError::TooLong);
        }
        let terms: Vec<Term> = words(text)?.iter().map(|word| term(word)).collect::<Result<_, _>>()?;
        if terms.len() > MOST { Err(FilterError::TooLong) } else { Ok(Self(terms)) }
    }

    /// Whether every row is wanted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the row is wanted.
    pub fn wants(&self, row: &BoardRow) -> bool {
        self.0.iter().all(|term| term.holds(row) != term.not)
    }
}

/// The words of a text, without the quotes around blanks.
fn words(text: &str) -> Result<Vec<String>, FilterError> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for letter in text.chars() {
        match letter {
            '"' => quoted = !quoted,
            blank if blank.is_whitespace() && !quoted => words.push(std::mem::take(&mut word)),
            other => word.push(other),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    if quoted { Err(FilterError::OpenQuote) } else { Ok(words) }
}

fn term(word: &str) -> Result<Term, FilterError> {
    let shown = |text: &str| text.chars().take(40).collect::<String>();
    let (not, rest) = word.strip_prefix('-').map_or((false, word), |rest| (true, rest));
    let Some((name, value)) = rest.split_once(':') else {
        let empty = rest.is_empty().then(|| FilterError::Empty("-".to_owned()));
        return empty.map_or_else(|| Ok(Term { not, field: FilterField::Text, value: rest.to_lowercase() }), Err);
    };
    let field = FIELDS.iter().find(|(known, _)| *known == name).map(|(_, field)| *field);
    let field = field.ok_or_else(|| FilterError::Field(shown(name)))?;
    let value = value.to_lowercase();
    if value.is_empty() {
        return Err(FilterError::Empty(format!("{name}:")));
    }
    if field == FilterField::State && !STATES.contains(&&*value) {
        return Err(FilterError::State(shown(&value)));
    }
    Ok(Term { not, field, value })
}

impl Term {
    fn holds(&self, row: &BoardRow) -> bool {
        let value = &*self.value;
        let has = |text: &str| text.to_lowercase().contains(value);
        let spec = row.spec.as_deref();
        match self.field {
            FilterField::Text => {
                has(row.view.job.as_str()) || spec.and_then(|spec| spec.description.as_deref()).is_some_and(has)
            }
            FilterField::Job => has(row.view.job.as_str()),
            FilterField::Owner => spec.and_then(|spec| spec.owner.as_deref()).is_some_and(has),
            FilterField::Tag => spec.is_some_and(|spec| spec.tags.iter().any(|tag| tag.to_lowercase() == value)),
            FilterField::Node => row.nodes().any(|node| node.to_lowercase() == value),
            FilterField::State => row.stands(value),
        }
    }
}

impl BoardRow {
    /// The nodes that its current slot was on.
    fn nodes(&self) -> impl Iterator<Item = &str> {
        let current = self.view.current.as_ref();
        let ran = current.into_iter().flat_map(|slot| slot.runs.iter().map(|run| run.node.as_str()));
        let holds = current.and_then(|slot| slot.lease.as_ref()).map(|lease| lease.node.as_str());
        ran.chain(holds)
    }

    /// Whether one of the words of `state:` holds of it.
    pub fn stands(&self, word: &str) -> bool {
        let view = &self.view;
        let is = |state: SlotState| view.current.as_ref().is_some_and(|slot| slot.state == state);
        let ended = |verdict: Verdict| view.latest.failing.as_ref().is_some_and(|failing| failing.verdict == verdict);
        // What nobody was to run nobody has missed.
        let missed = view.enabled && is(SlotState::Missed);
        match word {
            "pending" => view.enabled && is(SlotState::Pending),
            "running" => is(SlotState::Running),
            "retrying" => is(SlotState::Retrying),
            "done" => is(SlotState::Done),
            "skipped" => is(SlotState::Skipped),
            "failed" => is(SlotState::Failed) || ended(Verdict::Failed),
            "missed" => missed || ended(Verdict::Missed),
            "failing" => is(SlotState::Failed) || missed || view.latest.failing.is_some(),
            "late" => self.late,
            "paused" => view.paused.is_some(),
            "disabled" => !view.enabled,
            "orphaned" => view.orphaned,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::admin::fixture;
    use crate::job::{JobName, JobSpec, Program};
    use crate::observe::view::{JobView, SlotView};
    use crate::store::JobEntry;

    fn row(record: Option<crate::slot::SlotRecord>) -> BoardRow {
        let spec = JobSpec {
            description: Some("Monthly bills".to_owned()),
            owner: Some("Team Billing".to_owned()),
            tags: vec!["erp".to_owned()],
            ..JobSpec::new(JobName::new("billing").unwrap(), "0 * * * *", Program::Direct(Vec::new()))
        };
        let now = fixture::at(fixture::NOON);
        let current = record.map(|record| Arc::new(SlotView::of(&record, now, 3)));
        let view = JobView { current, ..JobView::of(&JobEntry::of(&spec, now), None) };
        BoardRow { view, spec: Some(Arc::new(spec)), cells: Vec::new(), late: false }
    }

    fn wants(filter: &str, row: &BoardRow) -> bool {
        Filter::parse(filter).unwrap().wants(row)
    }

    #[test]
    fn every_term_has_to_hold_and_a_minus_asks_for_its_opposite() {
        let row = row(Some(fixture::failed()));
        for filter in [
            "",
            "  ",
            "bill",
            "MONTHLY",
            "job:billing",
            "owner:billing tag:erp",
            "owner:\"team b\"",
            "node:c",
            "node:C",
            "state:failed state:failing",
            "-tag:other -state:paused -nightly",
        ] {
            assert!(wants(filter, &row), "{filter}");
        }
        for filter in
            ["nightly", "tag:er", "owner:ops", "node:d", "state:running", "-bill", "bill -tag:erp", "state:late"]
        {
            assert!(!wants(filter, &row), "{filter}");
        }
        assert!(!wants("state:pending", &self::row(None)));
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_what_can() {
        let refused = |text: &str| Filter::parse(text).unwrap_err().to_string();
        assert!(refused("stat:failed").contains("state:"));
        assert!(refused("state:broken").contains("failed, missed"));
        assert_eq!(refused("owner:"), "nothing stands behind owner: in the filter");
        assert_eq!(refused("-"), "nothing stands behind - in the filter");
        assert!(refused("owner:\"a b").contains("no end"));
        assert!(refused(&"x".repeat(513)).contains("512"));
        assert!(refused(&"x ".repeat(17)).contains("16"));
    }
}
