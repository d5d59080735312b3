//! A robot of WeCom. The key in its url is the secret; a text has at most 2,048 bytes, and a minute 20 messages.

use std::time::Duration;

use serde_json::json;

use crate::notify::letter::Letter;
use crate::notify::sinks::answer::Receipt;
use crate::notify::sinks::http::{Outgoing, number_in, of_code};
use crate::notify::sinks::secrets::SinkAccess;

/// Bytes, not characters: a Chinese one takes three.
const LONGEST: usize = 2_048;
/// Codes that pass: too many messages, and a server that is busy.
const BUSY: &[(i64, Duration)] = &[(45_009, Duration::from_secs(60)), (-1, Duration::from_secs(30))];

pub(super) fn request(access: &SinkAccess, letter: &Letter) -> Result<Outgoing, String> {
    let text = letter.text_within(LONGEST);
    Ok(Outgoing::json(access.url()?, &json!({ "msgtype": "text", "text": { "content": text } })))
}

/// The robot answers 200 also where it takes nothing.
pub(super) fn judge(body: &str) -> Option<Receipt> {
    of_code(number_in(body, "errcode"), body, BUSY)
}
