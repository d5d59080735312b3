//! What `[notify.NAME]` means: where messages go, and which. Secrets stay in their files until a daemon reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::event::NoticeKind;
use crate::job::Program;

/// The longest time over which messages are spread, unless a section says otherwise.
pub const SPREAD: Duration = Duration::from_secs(20);

/// All sinks by their names.
pub type Sinks = BTreeMap<String, SinkConfig>;

/// One `[notify.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkConfig {
    /// Where messages go.
    pub target: SinkTarget,
    /// The language of their texts.
    pub lang: Lang,
    /// What is told.
    pub events: BTreeSet<NoticeKind>,
    /// How often a job that goes on failing is told of again; none for never.
    pub remind_after: Option<Duration>,
    /// Whether the end of a run's output is in the text.
    pub output: bool,
    /// Stands before each message's first line.
    pub title: Option<String>,
    /// Stands after each message's last line.
    pub footer: Option<String>,
    /// Messages of one moment are spread over so long.
    pub spread: Duration,
}

/// Where messages go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinkTarget {
    /// A url that takes a POST.
    Web {
        /// In which form.
        form: WebForm,
        /// Where.
        url: SecretText,
        /// What messages are signed with.
        secret_file: Option<PathBuf>,
    },
    /// Mail.
    Mail(MailConfig),
    /// A command.
    Exec(Program),
}

/// Which form a POST has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebForm {
    /// JSON, signed as Standard Webhooks.
    Webhook,
    /// Slack, Mattermost, Rocket.Chat.
    Slack,
    /// A robot of DingTalk.
    DingTalk,
    /// A robot of Feishu, or Lark.
    Feishu,
    /// A robot of WeCom.
    WeCom,
    /// A check of Healthchecks.
    Healthchecks,
}

/// Mail: by which server, from whom, to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailConfig {
    /// The server's name.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the connection is protected.
    pub tls: MailTls,
    /// As whom to log in.
    pub user: Option<String>,
    /// The password's file.
    pub secret_file: Option<PathBuf>,
    /// The sender.
    pub from: String,
    /// The recipients.
    pub to: Vec<String>,
}

/// How a connection to a mail server is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailTls {
    /// It begins in plain text, and TLS is required before anything else.
    StartTls,
    /// TLS from the start.
    Tls,
    /// None: on loopback only.
    None,
}

/// The language of texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// 简体中文.
    Zh,
}

/// A secret, or the file that it is in.
#[derive(Clone, PartialEq, Eq)]
pub enum SecretText {
    /// It stands in `jobs.toml` itself.
    Here(String),
    /// In this file, on the first line.
    File(PathBuf),
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(_) => f.write_str("Here(…)"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

impl SinkTarget {
    /// The word of `type`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Mail(_) => "email",
            Self::Exec(_) => "exec",
            Self::Web { form, .. } => form.as_str(),
        }
    }
}

impl WebForm {
    /// The word of `type`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Slack => "slack",
            Self::DingTalk => "dingtalk",
            Self::Feishu => "feishu",
            Self::WeCom => "wecom",
            Self::Healthchecks => "healthchecks",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_stands_in_the_file_is_not_shown() {
        let here = SecretText::Here("https://hooks.example/hunter2".to_owned());
        assert!(!format!("{here:?}").contains("hunter2"));
    }
}
