//! A robot of Feishu, or Lark. Its key is `seconds\nsecret` and what is signed is empty: not as DingTalk's.

use std::time::Duration;

use serde_json::{Value, json};

use crate::notify::letter::Letter;
use crate::notify::sinks::answer::Receipt;
use crate::notify::sinks::http::{Outgoing, number_in, of_code};
use crate::notify::sinks::secrets::{SinkAccess, signature};

/// The robot takes 20 KB of JSON.
const LONGEST: usize = 15_000;
/// Codes that pass: more than 100 messages a minute or 5 a second, and everybody's at the full hour.
const BUSY: &[(i64, Duration)] =
    &[(9499, Duration::from_secs(60)), (11232, Duration::from_secs(60)), (11233, Duration::from_secs(60))];

/// Signed in the body.
pub(super) fn request(access: &SinkAccess, letter: &Letter) -> Result<Outgoing, String> {
    let text = letter.text_within(LONGEST);
    let mut body = json!({ "msg_type": "text", "content": { "text": text } });
    if let (Some(secret), Some(object)) = (access.secret(), body.as_object_mut()) {
        let stamp = letter.at.timestamp().to_string();
        let sign = signature(format!("{stamp}\n{secret}").as_bytes(), b"")?;
        object.insert("timestamp".to_owned(), Value::String(stamp));
        object.insert("sign".to_owned(), Value::String(sign));
    }
    Ok(Outgoing::json(access.url()?, &body))
}

/// The robot answers 200 also where it takes nothing. Older ones answer `StatusCode`.
pub(super) fn judge(body: &str) -> Option<Receipt> {
    of_code(number_in(body, "code").or_else(|| number_in(body, "StatusCode")), body, BUSY)
}
