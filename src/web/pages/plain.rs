//! `/login`, `/help`, what went wrong, and the form of an action: pages that need nothing of the store.

use askama::Template;

use crate::web::pages::frame::Frame;

/// `/login`.
#[derive(Template)]
#[template(path = "login.html")]
pub(super) struct LoginPage {
    pub(super) frame: Frame,
    pub(super) wrong: bool,
    pub(super) next: Option<String>,
}

/// `/help`.
#[derive(Template)]
#[template(path = "help.html")]
pub(super) struct HelpPage {
    pub(super) frame: Frame,
}

/// Why a request was not answered as it wished.
#[derive(Template)]
#[template(path = "problem.html")]
pub(super) struct ProblemPage {
    pub(super) frame: Frame,
    pub(super) heading: &'static str,
    pub(super) status: u16,
    pub(super) advice: &'static str,
    /// What the server said, and what of it is a quotation in English, between the two.
    pub(super) detail: (String, Option<String>, String),
    pub(super) login: bool,
}

impl ProblemPage {
    /// The sentence, with what is quoted in it apart.
    pub(super) fn detail(sentence: String, quoted: Option<&str>) -> (String, Option<String>, String) {
        match quoted.and_then(|quoted| Some((sentence.split_once(quoted)?, quoted))) {
            Some(((before, after), quoted)) => (before.to_owned(), Some(quoted.to_owned()), after.to_owned()),
            None => (sentence, None, String::new()),
        }
    }
}

/// The form of an action.
#[derive(Template)]
#[template(path = "act.html")]
pub(super) struct ActPage {
    pub(super) frame: Frame,
    pub(super) back: String,
    pub(super) heading: String,
    pub(super) glyph: &'static str,
    pub(super) sentence: Option<String>,
    pub(super) changed: bool,
    pub(super) objection: Option<String>,
    pub(super) action: String,
    /// Why there is nothing to do, or why it would be refused.
    pub(super) blocked: Option<String>,
    pub(super) effect: String,
    pub(super) undo: Option<String>,
    /// Where no command takes it back.
    pub(super) undo_words: Option<String>,
    pub(super) command: Option<String>,
    pub(super) token: Option<String>,
    pub(super) expect: Option<String>,
    pub(super) past: bool,
    pub(super) has_until: bool,
    pub(super) until: String,
    pub(super) confirm: Option<String>,
    pub(super) required: bool,
    pub(super) reason: String,
    pub(super) audited: String,
    pub(super) submit: String,
}
