//! Slots and the registry as texts, for stores that keep keys and values instead of rows. Pure: no store, no I/O, no clock.
//!
//! Of each slot there is kept: the *mark* (lease, wait or done marker), the attempt *counter*, one *document*, which is the JSON of
//! its [state](super::state::SlotState) with the verdict, each attempt and the operators' verbs, and beside it each attempt's
//! *output*, which no rule asks for and which may be long.

mod entries;
#[cfg(feature = "fuzzing")]
pub(super) mod fuzzing;
mod mark;

#[cfg(feature = "etcd")]
pub(super) use entries::NoteText;
#[cfg(feature = "zookeeper")]
pub(super) use entries::NotesText;
pub(super) use entries::{NodeText, PauseText};
pub(super) use mark::MarkText;

/// Why a text cannot be read, as a lowercase fragment.
pub(super) type Why = String;
