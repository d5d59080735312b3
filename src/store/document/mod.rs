//! Slots and the registry as texts, for stores that keep keys and values instead of rows: what is read becomes an
//! [`image`](super::image), what a rule has changed becomes what is to be written. Pure: no store, no I/O, no clock.
//!
//! Of each slot there is kept: the *mark* (lease, wait or done marker), the attempt *counter*, one *document* with the
//! verdict, each attempt and the operators' verbs, and beside it each attempt's *output*, which no rule asks for and
//! which may be long.

mod entries;
#[cfg(feature = "fuzzing")]
pub(super) mod fuzzing;
mod kept;
mod mark;

#[cfg(feature = "etcd")]
pub(super) use entries::NoteText;
#[cfg(feature = "zookeeper")]
pub(super) use entries::NotesText;
pub(super) use entries::{NodeText, PauseText};
pub(super) use kept::{Change, Document, Kept, Moment, Subject};
pub(super) use mark::{MarkChange, MarkText};

/// Why a text cannot be read, as a lowercase fragment.
pub(super) type Why = String;
