//! One POST: no redirects, a bounded answer, and what the code of an answer means.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::RETRY_AFTER;
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use url::Url;

use crate::notify::sinks::answer::Receipt;
use crate::text;

/// What is read of an answer.
const LARGEST_ANSWER: usize = 4 * 1024;
/// Characters of an answer that are shown.
const SHOWN: usize = 160;
/// A receiver may not put a message off for longer.
const LONGEST_WAIT: Duration = Duration::from_secs(6 * 3_600);
/// No one who answers nothing else is waited for as long.
const CONNECT: Duration = Duration::from_secs(5);

/// A body for a url.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) url: Url,
    pub(super) kind: &'static str,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: String,
}

impl Outgoing {
    pub(super) fn json(url: Url, body: &serde_json::Value) -> Self {
        Self { url, kind: "application/json", headers: Vec::new(), body: body.to_string() }
    }
}

/// What an answer with 200 means by its body, where it is no success.
pub(super) type Judge = fn(&str) -> Option<Receipt>;

/// Sends bodies. The client is made at the first message.
#[derive(Debug, Default)]
pub(super) struct Poster {
    client: OnceLock<Client>,
}

impl Poster {
    fn client(&self) -> Result<&Client, Receipt> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let made = Client::builder()
            .redirect(Policy::none())
            .connect_timeout(CONNECT)
            .pool_max_idle_per_host(1)
            .pool_idle_timeout(Duration::from_secs(30))
            .user_agent(concat!("cronward/", env!("CARGO_PKG_VERSION")))
            .build();
        let made = made.map_err(|error| Receipt::again(format!("no HTTP client: {}", error.without_url())))?;
        Ok(self.client.get_or_init(|| made))
    }

    pub(super) async fn post(&self, outgoing: Outgoing, judge: Judge) -> Receipt {
        let client = match self.client() {
            Ok(client) => client,
            Err(answer) => return answer,
        };
        let Outgoing { url, kind, headers, body } = outgoing;
        let mut request = client.post(url).header("content-type", kind).body(body);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        match request.send().await {
            Ok(response) => judged(response, judge).await,
            Err(error) => Receipt::again(innermost(&error.without_url())),
        }
    }
}

/// The cause: what surrounds it says only that there is one.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    format!("not sent: {}", text::message(&cause.to_string(), SHOWN))
}

async fn judged(response: Response, judge: Judge) -> Receipt {
    let (code, after) = (response.status(), retry_after(&response));
    let body = read(response).await;
    let said = text::message(body.trim(), SHOWN);
    let said = if said.is_empty() { code.to_string() } else { format!("{code}: {said}") };
    if code.is_success() {
        return judge(&body).unwrap_or(Receipt::Taken(said));
    }
    let is_passing =
        code.is_server_error() || matches!(code, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
    if is_passing {
        Receipt::Again { after, error: format!("answered {said}") }
    } else if code.is_redirection() {
        Receipt::Refused(format!("answered {said}; redirects are not followed: write the address that it leads to"))
    } else {
        Receipt::Refused(format!("answered {said}"))
    }
}

/// `Retry-After` in seconds; a date is not looked at, and the usual wait is as good.
fn retry_after(response: &Response) -> Option<Duration> {
    let text = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    Some(Duration::from_secs(text.trim().parse().ok()?).min(LONGEST_WAIT))
}

/// The beginning of the body.
async fn read(mut response: Response) -> String {
    let mut bytes: Vec<u8> = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        bytes.extend(chunk.iter().take(LARGEST_ANSWER.saturating_sub(bytes.len())));
        if bytes.len() >= LARGEST_ANSWER {
            break;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The number of a field in a body of JSON.
pub(super) fn number_in(body: &str, field: &str) -> Option<i64> {
    serde_json::from_str::<serde_json::Value>(body).ok()?.get(field)?.as_i64()
}

/// What a robot's own code means, where 0 is success.
pub(super) fn of_code(code: Option<i64>, body: &str, busy: &[(i64, Duration)]) -> Option<Receipt> {
    let said = text::message(body.trim(), SHOWN);
    match code {
        Some(0) => None,
        None => Some(Receipt::Refused(format!("answered 200 without a code: {said}; is the url that of a robot?"))),
        Some(code) => Some(match busy.iter().find(|(known, _)| *known == code) {
            Some((_, after)) => Receipt::Again { after: Some(*after), error: format!("answered {said}") },
            None => Receipt::Refused(format!("answered {said}")),
        }),
    }
}
