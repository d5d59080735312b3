//! The sentences of messages, in each language. A language is one constant of one type: a sentence that is missing does not compile.
//! A test compares what each sentence names.

mod en;
mod form;
mod language;
mod zh;

pub(super) use form::{Texts, fill};
pub(super) use language::of;
