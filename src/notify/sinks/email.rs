//! Mail: one message for all recipients, in plain text, which says that a program wrote it. A server that refuses it for good, which may be
//! for the sake of one of them, is asked for each of them alone.

use lettre::address::Envelope;
use std::time::Duration;

use lettre::message::header::{ContentType, Header, HeaderName, HeaderValue};
use lettre::message::{Mailbox, MessageBuilder};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::response::Category;
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};

use crate::config::{MailConfig, MailTls};
use crate::notify::letter::Letter;
use crate::notify::sinks::answer::{LONGEST_TRY, Receipt};
use crate::notify::sinks::secrets::SinkAccess;
use crate::text;

/// Characters of an answer that are shown.
const SHOWN: usize = 160;
/// Time for those who get the message by themselves; with the try before less than a claim lasts.
const EACH_ALONE: Duration = Duration::from_secs(30);
/// Characters of a subject.
const LONGEST_SUBJECT: usize = 180;

/// No holiday reply comes to what says this.
#[derive(Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}

/// Sends it.
pub(super) async fn send(config: &MailConfig, access: &SinkAccess, letter: &Letter, namespace: &str) -> Receipt {
    let message = match message(config, letter, namespace) {
        Ok(message) => message,
        Err(error) => return Receipt::Refused(error),
    };
    let transport = match transport(config, access) {
        Ok(transport) => transport,
        Err(error) => return Receipt::again(error),
    };
    let (envelope, text) = (message.envelope().clone(), message.formatted());
    let (answer, refused) = send_to(&transport, &envelope, &text, LONGEST_TRY).await;
    if envelope.to().len() < 2 || !refused {
        return answer;
    }
    // Nobody has got it, and one of the recipients may be the reason.
    let mut answers: Vec<(String, Receipt)> = Vec::new();
    let each = async {
        for to in envelope.to() {
            let answer = match Envelope::new(envelope.from().cloned(), vec![to.clone()]) {
                Ok(alone) => send_to(&transport, &alone, &text, LONGEST_TRY).await.0,
                Err(error) => Receipt::Refused(error.to_string()),
            };
            answers.push((to.to_string(), answer));
        }
    };
    let _ = tokio::time::timeout(EACH_ALONE, each).await;
    let done = answers.len();
    let late = envelope.to().iter().skip(done).map(|to| (to.to_string(), Receipt::again("no time was left for it")));
    answers.extend(late);
    together(answers)
}

/// Sends it once. What the server said; and whether it refused the message for good, but for a wrong password.
async fn send_to(
    transport: &AsyncSmtpTransport<Tokio1Executor>,
    envelope: &Envelope,
    text: &[u8],
    limit: Duration,
) -> (Receipt, bool) {
    let Ok(answer) = tokio::time::timeout(limit, transport.send_raw(envelope, text)).await else {
        return (Receipt::again(format!("no answer within {} s", limit.as_secs())), false);
    };
    match answer {
        Ok(response) => {
            let said: Vec<&str> = response.message().collect();
            let said = format!("{}: {}", response.code(), text::message(&said.join(" "), SHOWN));
            (Receipt::Taken(said), false)
        }
        Err(error) => {
            let told = text::message(&causes(&error), SHOWN);
            let is_login = error.status().is_some_and(|code| code.category == Category::Unspecified3);
            let refused = error.is_permanent() && !is_login;
            (if error.is_permanent() { Receipt::Refused(told) } else { Receipt::again(told) }, refused)
        }
    }
}

/// Of a message that was sent to each recipient alone. Where somebody has got it nobody gets it once more: each try would send it to all.
fn together(answers: Vec<(String, Receipt)>) -> Receipt {
    let (mut taken, mut without, mut again) = (None, Vec::new(), None);
    for (to, answer) in answers {
        match answer {
            Receipt::Taken(said) => taken = taken.or(Some(said)),
            Receipt::Refused(error) => without.push(format!("{to}: {error}")),
            Receipt::Again { error, after } => {
                without.push(format!("{to}: {error}"));
                again = again.or(Some(after));
            }
        }
    }
    let without = without.join("; ");
    match (taken, again) {
        (Some(said), _) if without.is_empty() => Receipt::Taken(said),
        (Some(said), _) => {
            tracing::warn!(without, "a mail was taken for some of its recipients, and is not sent again to the others");
            Receipt::Taken(format!("{said}; not taken for {without}"))
        }
        (None, Some(after)) => Receipt::Again { after, error: without },
        (None, None) => Receipt::Refused(without),
    }
}

fn causes(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !told.contains(&more) {
            told = format!("{told}: {more}");
        }
        cause = error.source();
    }
    told
}

/// The message.
pub(super) fn message(config: &MailConfig, letter: &Letter, namespace: &str) -> Result<Message, String> {
    let mailbox = |address: &str| -> Result<Mailbox, String> {
        address.parse().map_err(|error| format!("{address:?} is no address: {error}"))
    };
    let mut builder: MessageBuilder = Message::builder().from(mailbox(&config.from)?);
    for address in &config.to {
        builder = builder.to(mailbox(address)?);
    }
    builder
        .subject(text::message(&letter.title, LONGEST_SUBJECT))
        .message_id(Some(format!("<{}@{namespace}.cronward>", letter.id)))
        .header(AutoSubmitted)
        .header(ContentType::TEXT_PLAIN)
        .body(format!("{}\n", letter.text()))
        .map_err(|error| format!("the mail cannot be written: {error}"))
}

fn transport(config: &MailConfig, access: &SinkAccess) -> Result<AsyncSmtpTransport<Tokio1Executor>, String> {
    let parameters = || TlsParameters::new(config.host.clone()).map_err(|error| format!("no TLS: {error}"));
    let tls = match config.tls {
        MailTls::StartTls => Tls::Required(parameters()?),
        MailTls::Tls => Tls::Wrapper(parameters()?),
        MailTls::None => Tls::None,
    };
    let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(config.host.as_str())
        .port(config.port)
        .timeout(Some(LONGEST_TRY))
        .tls(tls);
    if let (Some(user), Some(password)) = (&config.user, access.secret()) {
        builder = builder.credentials(Credentials::new(user.clone(), password.to_owned()));
    }
    Ok(builder.build())
}
