//! Slack's incoming webhooks, which Mattermost and Rocket.Chat have as well. The url is the secret.

use serde_json::json;

use crate::notify::letter::Letter;
use crate::notify::sinks::http::Outgoing;
use crate::notify::sinks::secrets::SinkAccess;

/// Slack cuts longer texts.
const LONGEST: usize = 30_000;

pub(super) fn request(access: &SinkAccess, letter: &Letter) -> Result<Outgoing, String> {
    Ok(Outgoing::json(access.url()?, &json!({ "text": escaped(&letter.text_within(LONGEST)) })))
}

/// What would begin a link or a mention is text.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
