//! The states as pages show them: each has a word, a glyph and a colour, never a colour alone. The glyphs and colours stand in the
//! stylesheet, by the word.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::admin::{IdleReason, KnownJob};
use crate::board::CellState;
use crate::observe::view::{NoStart, SlotView};
use crate::slot::{SlotRecord, SlotState};

/// What a cell of the grid shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Shown {
    Failed,
    Missed,
    Retrying,
    Running,
    Pending,
    Skipped,
    Done,
    Disabled,
    NotDue,
    Unknown,
    Loading,
}

impl Shown {
    /// Each, in the order of the legend.
    pub(super) const ALL: [Self; 11] = [
        Self::Done,
        Self::Running,
        Self::Retrying,
        Self::Failed,
        Self::Missed,
        Self::Skipped,
        Self::Pending,
        Self::Disabled,
        Self::NotDue,
        Self::Unknown,
        Self::Loading,
    ];

    /// The English word. The one of JSON, where JSON has it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Missed => "missed",
            Self::Retrying => "retrying",
            Self::Running => "running",
            Self::Pending => "pending",
            Self::Skipped => "skipped",
            Self::Done => "done",
            Self::Disabled => "disabled",
            Self::NotDue => "not due",
            Self::Unknown => "unknown",
            Self::Loading => "loading",
        }
    }

    /// As the stylesheet names it.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::NotDue => "none",
            other => other.word(),
        }
    }

    /// Whether the number of attempts is worth showing: of a slot that is done, only where it took more than one.
    pub(super) const fn shows(self, attempts: u32) -> bool {
        match self {
            Self::Done | Self::Running => attempts > 1,
            Self::Retrying | Self::Failed | Self::Missed => attempts > 0,
            _ => false,
        }
    }
}

/// A slot with what is judged of it besides its record.
pub(super) struct JudgedSlot {
    pub(super) view: SlotView,
    /// Why it is neither due nor missed, where that is so.
    pub(super) idle: Option<IdleReason>,
    /// Why no node starts it by itself, though it lasts.
    pub(super) no_start: Option<NoStart>,
    /// Its job is paused.
    pub(super) paused: bool,
}

impl JudgedSlot {
    /// As it is now. `retention`: how long the store keeps records.
    pub(super) fn of(known: &KnownJob, record: &SlotRecord, now: DateTime<Utc>, retention: Duration) -> Self {
        let view = SlotView::of(record, now, known.entry.max_attempts);
        let (idle, no_start) = (known.idle_reason(record, now, retention), known.no_start(&record.slot, now));
        Self { view, idle, no_start, paused: false }
    }

    /// What is shown of it.
    pub(super) fn shown(&self) -> Shown {
        Shown::from(CellState::of(self.view.state, self.idle))
    }
}

impl From<SlotState> for Shown {
    fn from(state: SlotState) -> Self {
        Self::from(CellState::from(state))
    }
}

impl From<CellState> for Shown {
    fn from(state: CellState) -> Self {
        match state {
            CellState::Failed => Self::Failed,
            CellState::Missed => Self::Missed,
            CellState::Retrying => Self::Retrying,
            CellState::Running => Self::Running,
            CellState::Pending => Self::Pending,
            CellState::NotRead => Self::Loading,
            CellState::Skipped => Self::Skipped,
            CellState::Done => Self::Done,
            CellState::Disabled => Self::Disabled,
            CellState::Unknown => Self::Unknown,
            CellState::NotDue => Self::NotDue,
        }
    }
}
