//! JSON for programs, signed as Standard Webhooks says.

use crate::notify::letter::Letter;
use crate::notify::sinks::http::Outgoing;
use crate::notify::sinks::secrets::{SinkAccess, signature, webhook_key};

/// `webhook-id` is the same for each try, and the signature is of `id.timestamp.body`.
pub(super) fn request(access: &SinkAccess, letter: &Letter) -> Result<Outgoing, String> {
    let mut outgoing = Outgoing::json(access.url()?, &letter.json);
    let timestamp = letter.at.timestamp().to_string();
    if let Some(secret) = access.secret() {
        let signed = format!("{}.{timestamp}.{}", letter.id, outgoing.body);
        let signature = signature(&webhook_key(secret)?, signed.as_bytes())?;
        outgoing.headers.push(("webhook-signature", format!("v1,{signature}")));
    }
    outgoing.headers.push(("webhook-id", letter.id.clone()));
    outgoing.headers.push(("webhook-timestamp", timestamp));
    Ok(outgoing)
}
