//! What kept a node from claiming a slot, by its own words: from the line that tells of it to the next answer of the store.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::later;
use crate::job::NodeName;
use crate::observe::journal::Fact;
use crate::verify::history::{Heard, History};
use crate::verify::instance::Span;
use crate::verify::story::Story;

/// What it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The store could not be asked. Told at the first error of a row only.
    StoreFailed,
    /// The job was paused: whoever is told until when does not ask again before.
    Paused,
    /// An older slot of the job was held; who waits looks again when that lease has lapsed.
    Blocked,
    /// The slot was held; the same.
    Held(NodeName),
}

/// What kept one instance from claiming one slot.
#[derive(Debug)]
pub(super) struct Obstacle {
    pub(super) what: What,
    pub(super) instance: usize,
    pub(super) from: DateTime<Utc>,
    /// When the store next answered that instance; none if it never did.
    until: Option<DateTime<Utc>>,
}

impl Obstacle {
    /// Ends what a line ends, and adds what it begins.
    pub(super) fn hear(obstacles: &mut Vec<Self>, heard: &Heard) {
        let fact = &heard.told.line.fact;
        let what = match fact {
            Fact::StoreFailed { .. } => Some(What::StoreFailed),
            Fact::ClaimAnswered { answer, by } => match (answer.as_str(), by) {
                ("paused", _) => Some(What::Paused),
                ("blocked", _) => Some(What::Blocked),
                ("held", Some(by)) => Some(What::Held(by.clone())),
                _ => None,
            },
            _ => None,
        };
        let last = obstacles.iter_mut().rev().find(|last| last.instance == heard.instance);
        if let Some(last) = last.filter(|last| last.until.is_none()) {
            if what.as_ref() == Some(&last.what) && last.what == What::StoreFailed {
                return;
            }
            if is_an_answer(fact) || what.is_some() {
                last.until = Some(heard.at);
            }
        }
        obstacles.extend(what.map(|what| Self { what, instance: heard.instance, from: heard.at, until: None }));
    }

    /// For people, unless it is the lease of a node that gives its journal.
    pub(super) fn words(&self, history: &History) -> Option<String> {
        match &self.what {
            What::StoreFailed => Some("the store failed".to_owned()),
            What::Paused => Some("claims were answered paused".to_owned()),
            What::Blocked => Some("claims were answered blocked".to_owned()),
            What::Held(by) if history.knows(by) => None,
            What::Held(by) => Some(format!("{by}, whose journal is not given, held it")),
        }
    }

    /// When it was over at the latest, for slots with such a lease.
    pub(super) fn over(&self, lease: Duration) -> Option<DateTime<Utc>> {
        let looks_again = match self.what {
            What::StoreFailed | What::Paused => None,
            What::Blocked | What::Held(_) => Some(later(self.from, lease)),
        };
        [self.until, looks_again].into_iter().flatten().min()
    }

    /// Whether it, or what follows from it for so long, falls into a span.
    pub(super) fn strikes(
        &self,
        (from, to): (DateTime<Utc>, DateTime<Utc>),
        (lease, aftermath): (Duration, Duration),
    ) -> bool {
        self.from <= to && self.over(lease).is_none_or(|over| later(over, aftermath) >= from)
    }
}

impl Story {
    /// Whether the store could not be asked about the slot by an instance in some part of a span, by its own words.
    pub(super) fn fails(&self, instance: usize, span: Span) -> bool {
        let own = |it: &&Obstacle| it.instance == instance && it.what == What::StoreFailed;
        self.obstacles.iter().filter(own).any(|it| it.strikes(span, Default::default()))
    }
}

/// The store was reached, and said something of the slot.
pub(super) const fn is_an_answer(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::ClaimAnswered { .. }
            | Fact::Granted { .. }
            | Fact::RenewalAnswered { .. }
            | Fact::Settled { .. }
            | Fact::Closed { .. }
    )
}
