//! The sentences of messages, in each language. A language is one constant of one type: a sentence that is missing does not compile.
//! A test compares what each sentence names.

mod en;
mod zh;

use crate::config::Lang;
use crate::event::NoticeKind;

/// Every sentence. What stands in braces is filled in.
#[derive(Debug)]
pub(super) struct Texts {
    pub(super) failed: &'static str,
    pub(super) missed: &'static str,
    pub(super) missed_several: &'static str,
    pub(super) late: &'static str,
    pub(super) late_never: &'static str,
    pub(super) overlap: &'static str,
    pub(super) recovered: &'static str,
    pub(super) reminder: &'static str,
    pub(super) started: &'static str,
    pub(super) succeeded: &'static str,
    pub(super) attempt_failed: &'static str,
    pub(super) paused: &'static str,
    pub(super) resumed: &'static str,
    pub(super) node_silent: &'static str,
    pub(super) config_rejected: &'static str,
    /// Without what the store knows of the slot.
    pub(super) failed_bare: &'static str,
    pub(super) exit: &'static str,
    pub(super) signal: &'static str,
    pub(super) outcome: &'static str,
    pub(super) output: &'static str,
    pub(super) owner: &'static str,
    pub(super) runbook: &'static str,
    pub(super) page: &'static str,
    pub(super) rerun: &'static str,
    pub(super) look: &'static str,
    pub(super) digest: &'static str,
    pub(super) digest_more: &'static str,
    pub(super) test: &'static str,
}

/// The sentences of a language.
pub(super) const fn of(lang: Lang) -> &'static Texts {
    match lang {
        Lang::En => &en::TEXTS,
        Lang::Zh => &zh::TEXTS,
    }
}

impl Texts {
    /// The first sentence of a message of this kind.
    pub(super) const fn sentence(&self, kind: NoticeKind) -> &'static str {
        match kind {
            NoticeKind::Failed => self.failed,
            NoticeKind::Missed => self.missed,
            NoticeKind::Late => self.late,
            NoticeKind::Overlap => self.overlap,
            NoticeKind::Recovered => self.recovered,
            NoticeKind::Reminder => self.reminder,
            NoticeKind::Started => self.started,
            NoticeKind::Succeeded => self.succeeded,
            NoticeKind::AttemptFailed => self.attempt_failed,
            NoticeKind::Paused => self.paused,
            NoticeKind::Resumed => self.resumed,
            NoticeKind::NodeSilent => self.node_silent,
            NoticeKind::ConfigRejected => self.config_rejected,
        }
    }
}

/// The sentence with its places filled in. What is put in is never looked at again.
pub(super) fn fill(sentence: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(sentence.len() + 64);
    let mut rest = sentence;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        filled.push_str(before);
        filled.push_str(values.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value));
        rest = after;
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(texts: &Texts) -> Vec<&'static str> {
        let kinds = NoticeKind::ALL.into_iter().map(|(_, kind)| texts.sentence(kind));
        let others = [
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
