//! Every sentence of the pages, in each language. A sentence that one language lacks does not compile: a language is a value of [`Texts`].
//! What users wrote is never translated: names, reasons, output; nor what commands print.
//! Why a slot ran or did not, and what an action does, is said in the words of [`crate::admin::why`] and [`crate::admin::actions`], which
//! have the English ones; values that commands tell too (a problem, a filter that cannot be read) show themselves in English.

mod act_chinese;
mod act_english;
mod chinese;
mod english;
mod plain;
mod problem_chinese;
mod schedule_chinese;
mod sentences;
mod why_chinese;
mod words_chinese;

pub(super) use chinese::CHINESE;
pub(super) use english::ENGLISH;
pub(super) use sentences::{Texts, Words};
