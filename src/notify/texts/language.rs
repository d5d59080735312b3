//! The languages that there are.

use crate::config::Lang;
use crate::notify::texts::form::Texts;
use crate::notify::texts::{en, zh};

/// The sentences of a language.
pub(in crate::notify) const fn of(lang: Lang) -> &'static Texts {
    match lang {
        Lang::En => &en::TEXTS,
        Lang::Zh => &zh::TEXTS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::NoticeKind;
    use crate::notify::texts::form::fill;

    fn all(texts: &Texts) -> Vec<&'static str> {
        let kinds = NoticeKind::ALL.into_iter().map(|(_, kind)| texts.sentence(kind));
        let others = [
            texts.missed_after,
            texts.missed_several,
            texts.late_never,
            texts.failed_bare,
            texts.exit,
            texts.signal,
            texts.outcome,
            texts.output,
            texts.owner,
            texts.runbook,
            texts.page,
            texts.rerun,
            texts.look,
            texts.digest,
            texts.digest_more,
            texts.test,
        ];
        kinds.chain(others).collect()
    }

    fn places(sentence: &str) -> Vec<&str> {
        let mut places: Vec<&str> =
            sentence.split('{').skip(1).filter_map(|part| Some(part.split_once('}')?.0)).collect();
        places.sort_unstable();
        places
    }

    #[test]
    fn each_sentence_names_the_same_in_every_language() {
        for (en, zh) in all(of(Lang::En)).into_iter().zip(all(of(Lang::Zh))) {
            assert_eq!(places(en), places(zh), "{en} / {zh}");
            assert!(!zh.is_ascii() || zh.trim().is_empty(), "not translated: {zh}");
        }
    }

    #[test]
    fn what_is_filled_in_is_not_filled_again() {
        assert_eq!(fill("a {x}, {y}{z}!", &[("x", "{y}"), ("y", "2")]), "a {y}, 2!");
        assert_eq!(fill("open {x", &[("x", "1")]), "open {x");
    }
}
