//! Every sentence of the pages, in each language. A sentence that one language lacks does not compile: a language is a value of [`Texts`].
//! What users wrote is never translated: names, reasons, output; nor what commands print.

mod chinese;
mod english;
mod plain;
mod sentences;

pub(super) use chinese::CHINESE;
pub(super) use english::ENGLISH;
pub(super) use sentences::Texts;
