//! Mail: one message for all recipients, in plain text, which says that a program wrote it.

use lettre::message::header::{ContentType, Header, HeaderName, HeaderValue};
use lettre::message::{Mailbox, MessageBuilder};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};

use crate::config::{MailConfig, MailTls};
use crate::notify::letter::Letter;
use crate::notify::sinks::answer::{LONGEST_TRY, Receipt};
use crate::notify::sinks::secrets::SinkAccess;
use crate::text;

/// Characters of an answer that are shown.
const SHOWN: usize = 160;
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
    match transport.send(message).await {
        Ok(response) => {
            let said: Vec<&str> = response.message().collect();
            Receipt::Taken(format!("{}: {}", response.code(), text::message(&said.join(" "), SHOWN)))
        }
        Err(error) => {
            let told = text::message(&causes(&error), SHOWN);
            if error.is_permanent() { Receipt::Refused(told) } else { Receipt::again(told) }
        }
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
