//! What a sink needs to be let in: read from its files, and taken out of every text that is shown.

use std::fmt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use url::Url;

use crate::config::{MailConfig, SecretText, SinkTarget, read_secret_file, read_url_file, usable};
use crate::notify::sinks::answer::Receipt;
use crate::store::secrets;

/// What stands where a text was cut.
const CUT: char = '…';
/// Less of the beginning of a secret tells nothing.
const TELLING: usize = 4;

/// The place of a job's name in a url, as it is parsed and as it is written.
const JOB: [&str; 2] = ["%7Bjob%7D", "{job}"];

/// Secrets of one sink. Never shown.
#[derive(Clone, Default)]
pub(super) struct SinkAccess {
    url: Option<Url>,
    /// As it was written: what is taken out of texts.
    written: Vec<String>,
    secret: Option<String>,
}

impl fmt::Debug for SinkAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SinkAccess").field("url", &self.url.is_some()).field("secret", &self.secret.is_some()).finish()
    }
}

impl SinkAccess {
    pub(super) fn read(target: &SinkTarget) -> Result<Self, String> {
        match target {
            SinkTarget::Web { url, secret_file, .. } => {
                let secret = secret_file.as_deref().map(secret).transpose()?;
                Self::of(&text_of(url)?, secret)
            }
            SinkTarget::Mail(MailConfig { user, secret_file, .. }) => {
                let secret = secret_file.as_deref().map(secret).transpose()?;
                let login =
                    secret.as_deref().map(|secret| format!("\0{}\0{secret}", user.as_deref().unwrap_or_default()));
                let mut written: Vec<String> = secret.iter().cloned().collect();
                // As servers repeat what they refuse: AUTH LOGIN and AUTH PLAIN.
                written.extend(secret.iter().chain(&login).map(|text| STANDARD.encode(text)));
                Ok(Self { url: None, written, secret })
            }
            SinkTarget::Exec(_) => Ok(Self::default()),
        }
    }

    /// With this url, which may have `{job}` in it, and this secret.
    pub(super) fn of(url: &str, secret: Option<String>) -> Result<Self, String> {
        let parsed = usable(url).map_err(|hint| format!("the url is no address that takes messages: {hint}"))?;
        let mut written = vec![url.to_owned(), parsed.to_string()];
        written.extend(secret.clone());
        written.extend(secret.as_deref().and_then(|secret| secret.strip_prefix("whsec_")).map(str::to_owned));
        // A password in the url, which goes to the receiver as `Authorization: Basic`.
        let named = secrets(url);
        written.extend(named.iter().map(|secret| STANDARD.encode(format!("{}:{secret}", parsed.username()))));
        written.extend(named.into_iter().filter(|secret| secret.len() >= TELLING));
        // Receivers and errors may repeat the part that lets one in.
        let path = parsed.path().trim_matches('/');
        let of_path = path.split('/').filter(|part| !JOB.contains(part));
        written.extend(of_path.chain(parsed.query()).filter(|part| part.len() >= 8).map(str::to_owned));
        let values = parsed.query_pairs().map(|(_, value)| value.into_owned());
        let raw = parsed.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        written.extend(values.chain(raw.map(|(_, value)| value.to_owned())).filter(|value| value.len() >= 8));
        Ok(Self { url: Some(parsed), written, secret })
    }

    /// The same for a message about a job, whose name may be in the url that is sent to.
    pub(super) fn about(&self, job: &str) -> Self {
        let named = self.written.iter().map(|secret| filled(secret, job)).filter(|named| !self.written.contains(named));
        // The longer ones first: a part that was taken out would keep the whole from being found.
        let mut written: Vec<String> = named.chain(self.written.iter().cloned()).collect();
        written.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { written, ..self.clone() }
    }

    /// Where to send.
    pub(super) fn url(&self) -> Result<Url, String> {
        self.url.clone().ok_or_else(|| "the sink has no url".to_owned())
    }

    /// What to sign with, or the password.
    pub(super) fn secret(&self) -> Option<&str> {
        self.secret.as_deref()
    }

    /// The text without secrets, and without the beginning of one where the text ends or was cut within it.
    pub(super) fn redact(&self, text: &str) -> String {
        let secrets = self.written.iter().filter(|secret| !secret.is_empty());
        let whole = secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "***"));
        let pieces: Vec<String> = whole.split(CUT).map(|piece| self.without_beginning(piece)).collect();
        pieces.join(&CUT.to_string())
    }

    fn without_beginning(&self, text: &str) -> String {
        let begins = |at: &usize| {
            let end = text.get(*at..).unwrap_or_default();
            end.len() >= TELLING && self.written.iter().any(|secret| secret.starts_with(end))
        };
        let cut = text.char_indices().map(|(at, _)| at).find(begins);
        cut.map_or_else(|| text.to_owned(), |at| format!("{}***", text.get(..at).unwrap_or_default()))
    }

    pub(super) fn redacted(&self, answer: Receipt) -> Receipt {
        match answer {
            Receipt::Taken(said) => Receipt::Taken(self.redact(&said)),
            Receipt::Again { after, error } => Receipt::Again { after, error: self.redact(&error) },
            Receipt::Refused(error) => Receipt::Refused(self.redact(&error)),
        }
    }

    /// Every secret, for whoever must not hand them on.
    pub(super) fn all(&self) -> &[String] {
        &self.written
    }
}

fn text_of(text: &SecretText) -> Result<String, String> {
    match text {
        SecretText::Here(text) => Ok(text.clone()),
        SecretText::File(path) => read_url_file(path).map_err(|error| format!("url_file {} {error}", path.display())),
    }
}

fn secret(path: &Path) -> Result<String, String> {
    let read = read_secret_file(path).map_err(|error| format!("secret_file {} {error}", path.display()))?;
    if read.is_empty() { Err(format!("secret_file {} is empty", path.display())) } else { Ok(read) }
}

/// With the name of a job where there is a place for it.
pub(super) fn filled(text: &str, job: &str) -> String {
    JOB.iter().fold(text.to_owned(), |text, place| text.replace(place, job))
}

/// HMAC-SHA256 in base64.
pub(super) fn signature(key: &[u8], message: &[u8]) -> Result<String, String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|error| format!("the secret cannot sign: {error}"))?;
    mac.update(message);
    Ok(STANDARD.encode(mac.finalize().into_bytes()))
}

/// The key of a secret as Standard Webhooks writes it: `whsec_` and base64, or as it is.
pub(super) fn webhook_key(secret: &str) -> Result<Vec<u8>, String> {
    match secret.strip_prefix("whsec_") {
        Some(encoded) => {
            STANDARD.decode(encoded).map_err(|_| "what follows whsec_ in secret_file is not base64".to_owned())
        }
        None => Ok(secret.as_bytes().to_vec()),
    }
}
