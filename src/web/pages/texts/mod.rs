//! Every sentence of the pages, in each language. A sentence that one language lacks does not compile: a language is a value of [`Texts`].
//! What users wrote is never translated: names, reasons, output; nor what commands print.
//! Why a slot ran or did not is said in the words of [`crate::admin::why`], which has the English ones.

mod chinese;
mod english;
mod plain;
mod sentences;
mod why_chinese;

pub(super) use chinese::CHINESE;
pub(super) use english::ENGLISH;
pub(super) use sentences::Texts;
