//! Reads `[notify.NAME]`, and looks whether each name in a job's `notify` is there. No secret's file is opened: the daemon alone reads
//! those.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use crate::config::command;
use crate::config::context::Context;
use crate::config::draft::Draft;
use crate::config::reader::{LONGEST, Section, put, put_some};
use crate::config::sections::HOMES;
use crate::config::sink::{Lang, MailConfig, MailTls, SPREAD, SecretText, SinkConfig, SinkTarget, Sinks, WebForm};
use crate::config::value::{Entry, nearest, nearest_allowed};
use crate::event::NoticeKind;
use crate::job::{LockName, Program};

/// Keys of every sink.
const COMMON: [&str; 8] = ["type", "lang", "events", "remind_after", "output", "title", "footer", "spread"];
const WEB: &[&str] = &["url", "url_file"];
const SIGNED: &[&str] = &["url", "url_file", "secret_file"];
const MAIL: &[&str] = &["smtp", "tls", "user", "secret_file", "from", "to"];
const EXEC: &[&str] = &["command"];

/// One shorter than a minute is no reminder.
const REMIND: RangeInclusive<Duration> = Duration::from_secs(60)..=LONGEST;
/// Whoever is to be told waits no longer.
const SPREADS: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(300);
/// Recipients of one mail.
const MOST_RECIPIENTS: usize = 100;
/// Sinks of one file.
const MOST_SINKS: usize = 100;

/// The kinds of sinks, by the word of `type`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SinkType {
    Web(WebForm),
    Mail,
    Exec,
}

const TYPES: &[(&str, SinkType)] = &[
    ("webhook", SinkType::Web(WebForm::Webhook)),
    ("slack", SinkType::Web(WebForm::Slack)),
    ("dingtalk", SinkType::Web(WebForm::DingTalk)),
    ("feishu", SinkType::Web(WebForm::Feishu)),
    ("wecom", SinkType::Web(WebForm::WeCom)),
    ("email", SinkType::Mail),
    ("healthchecks", SinkType::Web(WebForm::Healthchecks)),
    ("exec", SinkType::Exec),
];

impl SinkType {
    const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Web(WebForm::Webhook | WebForm::DingTalk | WebForm::Feishu) => SIGNED,
            Self::Web(_) => WEB,
            Self::Mail => MAIL,
            Self::Exec => EXEC,
        }
    }

    /// What is told when the section says nothing: a check of Healthchecks is to see each run.
    fn usual(self) -> BTreeSet<NoticeKind> {
        match self {
            Self::Web(WebForm::Healthchecks) => PINGS.into(),
            _ => NoticeKind::USUAL.into(),
        }
    }
}

/// What a check of Healthchecks has a word for.
const PINGS: [NoticeKind; 5] =
    [NoticeKind::Started, NoticeKind::AttemptFailed, NoticeKind::Succeeded, NoticeKind::Failed, NoticeKind::Missed];

/// Reads every `[notify.NAME]`.
pub(super) fn sinks(section: &Section<'_>) -> Sinks {
    let mut sinks = Sinks::new();
    for (key, sink) in section.children() {
        let name = key.get_ref().as_ref();
        if LockName::new(name).is_err() {
            let shown: String = name.chars().take(60).collect();
            let near = nearest_allowed(name);
            let hint = format!("use a-z, 0-9, '.', '_' and '-', for example [notify.{near}]");
            sink.ctx.error("bad-name", key.span(), format!("sink {shown:?} is not allowed"), hint);
            continue;
        }
        if sinks.len() == MOST_SINKS {
            let message = format!("there are more than {MOST_SINKS} sinks");
            sink.ctx.error("too-many-sinks", key.span(), message, "let several jobs share a sink");
            break;
        }
        if let Some(read) = one(&sink) {
            sinks.insert(name.to_owned(), read);
        }
    }
    sinks
}

fn one(section: &Section<'_>) -> Option<SinkConfig> {
    let Some(entry) = section.entry("type") else {
        let message = "the sink has no type".to_owned();
        if !section.is_misspelled("type") {
            section.ctx.error("missing-type", section.span.clone(), message, "add type = \"webhook\"");
        }
        return None;
    };
    let kind = entry.word(TYPES)?;
    let known: Vec<&str> = COMMON.iter().chain(kind.keys()).copied().collect();
    section.only(&known, HOMES);
    let target = match kind {
        SinkType::Web(form) => web(section, form),
        SinkType::Mail => mail(section).map(SinkTarget::Mail),
        SinkType::Exec => command(section).map(SinkTarget::Exec),
    };
    let mut sink = SinkConfig {
        target: target?,
        lang: Lang::En,
        events: kind.usual(),
        remind_after: None,
        output: true,
        title: None,
        footer: None,
        spread: SPREAD,
    };
    put(&mut sink.lang, section.word("lang", &[("en", Lang::En), ("zh", Lang::Zh)]));
    put(&mut sink.events, events(section, kind));
    put_some(&mut sink.remind_after, section.duration("remind_after", REMIND));
    put(&mut sink.output, section.boolean("output"));
    put_some(&mut sink.title, line(section, "title", "\"[prod]\""));
    put_some(&mut sink.footer, line(section, "footer", "\"Who is on call: https://wiki.example/oncall\""));
    put(&mut sink.spread, section.duration("spread", SPREADS));
    if sink.remind_after.is_some() {
        sink.events.insert(NoticeKind::Reminder);
    }
    Some(sink)
}

fn events(section: &Section<'_>, kind: SinkType) -> Option<BTreeSet<NoticeKind>> {
    let entry = section.entry("events")?;
    let items = entry.items("a list of events", "[\"failed\", \"recovered\"]")?;
    if items.is_empty() {
        entry.refuse("empty", "is empty: nothing would ever be told", "leave it out, or name events");
        return None;
    }
    let read: Vec<Option<NoticeKind>> = items.iter().map(|item| event(item, kind)).collect();
    read.into_iter().collect()
}

fn event(item: &Entry<'_>, kind: SinkType) -> Option<NoticeKind> {
    let event = item.word(&NoticeKind::ALL)?;
    if event == NoticeKind::Reminder {
        item.refuse("bad-word", "is not told by itself", "write remind_after = \"4h\" in the sink");
        return None;
    }
    if kind == SinkType::Web(WebForm::Healthchecks) && !PINGS.contains(&event) {
        let known = PINGS.map(NoticeKind::as_str).join(", ");
        item.refuse("bad-word", "is nothing that Healthchecks has a signal for", format!("one of {known}"));
        return None;
    }
    Some(event)
}

/// A text on one line, of moderate length.
fn line(section: &Section<'_>, key: &str, example: &str) -> Option<String> {
    let entry = section.entry(key)?;
    let text = entry.filled_text(example)?;
    if text.chars().any(char::is_control) || text.chars().count() > 200 {
        entry.refuse("bad-text", "is no line of at most 200 characters", format!("write {key} = {example}"));
        return None;
    }
    Some(text)
}

fn web(section: &Section<'_>, form: WebForm) -> Option<SinkTarget> {
    let url = match (section.entry("url"), section.entry("url_file")) {
        (Some(_), Some(file)) => {
            file.refuse("both-urls", "is given besides url", "keep url_file: whoever has the url can send messages");
            return None;
        }
        (Some(url), None) => literal_url(&url)?,
        (None, Some(file)) => SecretText::File(PathBuf::from(file.filled_text("\"/run/secrets/ops-url\"")?)),
        (None, None) => {
            let message = "the sink has no url".to_owned();
            section.ctx.error("missing-url", section.span.clone(), message, "add url_file = \"/run/secrets/ops-url\"");
            return None;
        }
    };
    let secret_file = secret_file(section);
    Some(SinkTarget::Web { form, url, secret_file })
}

/// The url of a robot is its password.
fn literal_url(entry: &Entry<'_>) -> Option<SecretText> {
    let raw = entry.raw("\"https://hooks.example/…\"")?;
    let text = entry.filled_text("\"https://hooks.example/…\"")?;
    let span = entry.span();
    entry.ctx.hide(span.start + 1..span.end.saturating_sub(1).max(span.start + 1));
    if let Err(hint) = usable(&text) {
        entry.refuse("bad-url", "is no address that takes messages", hint);
        return None;
    }
    let is_local = Url::parse(&text).is_ok_and(|url| url.host_str().is_some_and(is_loopback));
    if !raw.contains("${") && !is_local {
        let hint = "use url_file = \"/run/secrets/…\": whoever has the url can send messages";
        entry.ctx.warn("secret-in-file", span, "the url of a sink is in the file".to_owned(), hint);
    }
    Some(SecretText::Here(text))
}

/// Whether a POST can go there; else what to do.
///
/// # Errors
/// What to write instead, without the url.
pub fn usable(url: &str) -> Result<Url, String> {
    let parsed = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.host().is_some());
    parsed.ok_or_else(|| "write a url that begins with https:// or http://".to_owned())
}

fn secret_file(section: &Section<'_>) -> Option<PathBuf> {
    Some(PathBuf::from(section.entry("secret_file")?.filled_text("\"/run/secrets/ops-secret\"")?))
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn missing<T>(section: &Section<'_>, key: &'static str, hint: &str) -> Option<T> {
    if section.entry(key).is_none() && !section.is_misspelled(key) {
        section.ctx.error("missing-key", section.span.clone(), format!("the sink has no {key}"), format!("add {hint}"));
    }
    None
}

fn mail(section: &Section<'_>) -> Option<MailConfig> {
    let server = server(section).or_else(|| missing(section, "smtp", "smtp = \"mail.example:587\""));
    let from = address(section, "from").or_else(|| missing(section, "from", "from = \"cronward@example.com\""));
    let to = recipients(section).or_else(|| missing(section, "to", "to = [\"ops@example.com\"]"));
    let (host, port) = server?;
    let words = [("starttls", MailTls::StartTls), ("tls", MailTls::Tls), ("none", MailTls::None)];
    let mut tls = if port == 465 { MailTls::Tls } else { MailTls::StartTls };
    put(&mut tls, section.word("tls", &words));
    if let Some(entry) = section.entry("tls").filter(|_| tls == MailTls::None && !is_loopback(&host)) {
        entry.refuse("plain-mail", "may be \"none\" on loopback only", "write tls = \"starttls\", or name 127.0.0.1");
    }
    let user = section.entry("user").and_then(|entry| entry.filled_text("\"cronward\""));
    let secret_file = secret_file(section);
    if user.is_some() != secret_file.is_some() && section.ctx.errors() == 0 {
        let message = "user and secret_file go together".to_owned();
        section.ctx.error("half-login", section.span.clone(), message, "give both, or neither");
    }
    Some(MailConfig { host, port, tls, user, secret_file, from: from?, to: to? })
}

fn server(section: &Section<'_>) -> Option<(String, u16)> {
    let entry = section.entry("smtp")?;
    let text = entry.filled_text("\"mail.example:587\"")?;
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()),
        None => (text.as_str(), Some(587)),
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    match port.filter(|_| !host.is_empty() && host.chars().all(allowed)) {
        Some(port) => Some((host.trim_matches(['[', ']']).to_owned(), port)),
        None => {
            let shown: String = text.chars().take(60).collect();
            entry.refuse(
                "bad-address",
                &format!("cannot be {shown:?}"),
                "write a host and a port: \"mail.example:587\"",
            );
            None
        }
    }
}

fn address(section: &Section<'_>, key: &str) -> Option<String> {
    checked(&section.entry(key)?)
}

fn recipients(section: &Section<'_>) -> Option<Vec<String>> {
    let entry = section.entry("to")?;
    let items = entry.items("a list of addresses", "[\"ops@example.com\"]")?;
    if items.is_empty() || items.len() > MOST_RECIPIENTS {
        entry.refuse("bad-length", &format!("names none, or more than {MOST_RECIPIENTS}"), "name a list's address");
        return None;
    }
    let read: Vec<Option<String>> = items.iter().map(checked).collect();
    read.into_iter().collect()
}

/// The form alone: whether it is somebody's the mail server knows.
fn checked(entry: &Entry<'_>) -> Option<String> {
    let text = entry.filled_text("\"ops@example.com\"")?;
    let fits = |c: char| !c.is_control() && !c.is_whitespace() && !matches!(c, '<' | '>' | ',' | ';' | '"');
    let (user, host) = text.rsplit_once('@').unwrap_or(("", ""));
    if user.is_empty() || host.is_empty() || text.len() > 254 || !text.chars().all(fits) {
        let shown: String = text.chars().take(60).collect();
        entry.refuse("bad-address", &format!("cannot be {shown:?}"), "write a plain address: \"ops@example.com\"");
        return None;
    }
    Some(text)
}

fn command(section: &Section<'_>) -> Option<Program> {
    let program = command::program(section);
    let is_there = match &program {
        Program::Direct(words) => !words.is_empty(),
        Program::Shell(_) => true,
    };
    is_there.then_some(program)
}

/// Each name in a job's `notify` has to be there.
pub(super) fn names(ctx: &Context<'_>, drafts: &[Draft], sinks: &Section<'_>) {
    let known: Vec<String> = sinks.children().map(|(key, _)| key.get_ref().to_string()).collect();
    for draft in drafts {
        for name in draft.spec.notify.iter().filter(|name| !known.contains(name)) {
            let shown: String = name.chars().take(60).collect();
            let message = format!("notify: there is no sink {shown:?}");
            let hint = match nearest(name, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("add [notify.{}] with a type, or remove the name", nearest_allowed(name)),
            };
            ctx.error("unknown-sink", draft.place_or_name("notify"), message, hint);
        }
    }
}

/// A sink that no job names says nothing of any job. Beside an error it may be what that is about.
pub(super) fn unused(drafts: &[Draft], section: &Section<'_>, sinks: &Sinks) {
    if section.ctx.errors() > 0 {
        return;
    }
    for (key, sink) in section.children() {
        let name = key.get_ref().as_ref();
        let of_nodes = |config: &SinkConfig| {
            config.events.iter().any(|event| matches!(event, NoticeKind::NodeSilent | NoticeKind::ConfigRejected))
        };
        let is_used = drafts.iter().any(|draft| draft.spec.notify.iter().any(|named| named == name));
        if !is_used && sinks.get(name).is_some_and(|config| !of_nodes(config)) {
            let message = format!("no job has {name:?} in its notify: nothing is sent there");
            let hint = format!("write notify = [{name:?}] in [defaults] or in a job");
            sink.ctx.warn("unused-sink", key.span(), message, hint);
        }
    }
}
