//! A robot of DingTalk. Its key is the secret itself; more than 20 messages a minute silence it for 10 minutes.

use std::time::Duration;

use serde_json::json;

use crate::notify::letter::Letter;
use crate::notify::sinks::answer::Receipt;
use crate::notify::sinks::http::{Outgoing, number_in, of_code};
use crate::notify::sinks::secrets::{SinkAccess, signature};

/// The robot takes 20,000 bytes of JSON.
const LONGEST: usize = 15_000;
/// Codes that pass: too many messages, and a server that is busy.
const BUSY: &[(i64, Duration)] = &[(130_101, Duration::from_secs(600)), (-1, Duration::from_secs(30))];

/// Signed: base64 of HMAC-SHA256 of `ms\nsecret`, with the secret as the key.
pub(super) fn request(access: &SinkAccess, letter: &Letter) -> Result<Outgoing, String> {
    let mut url = access.url()?;
    if let Some(secret) = access.secret() {
        let stamp = letter.at.timestamp_millis().to_string();
        let sign = signature(secret.as_bytes(), format!("{stamp}\n{secret}").as_bytes())?;
        url.query_pairs_mut().append_pair("timestamp", &stamp).append_pair("sign", &sign);
    }
    let text = letter.text_within(LONGEST);
    Ok(Outgoing::json(url, &json!({ "msgtype": "text", "text": { "content": text } })))
}

/// The robot answers 200 also where it takes nothing.
pub(super) fn judge(body: &str) -> Option<Receipt> {
    of_code(number_in(body, "errcode"), body, BUSY)
}
