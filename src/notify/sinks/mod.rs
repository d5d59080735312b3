//! Where messages go. Each sink makes of a letter what its receiver takes, and judges what that answers. A sink never decides when
//! it is tried again.

mod dingtalk;
mod email;
mod exec;
mod feishu;
mod healthchecks;
mod http;
mod secrets;
mod slack;
mod webhook;
mod wecom;

use std::time::Duration;

use crate::config::{SinkConfig, Target, WebForm};
use crate::exec::Launcher;
use crate::notify::letter::Letter;
use crate::notify::sinks::http::Poster;
use crate::notify::sinks::secrets::Access;

/// A try that takes longer has failed.
const LONGEST_TRY: Duration = Duration::from_secs(10);

/// What became of a try. No text has a secret in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The receiver took it, and said so.
    Taken(String),
    /// It may take it later.
    Again {
        /// When it wishes to be asked again.
        after: Option<Duration>,
        /// Why.
        error: String,
    },
    /// It takes it never.
    Refused(String),
}

impl Answer {
    fn again(error: impl Into<String>) -> Self {
        Self::Again { after: None, error: error.into() }
    }
}

/// A sink with its secrets.
#[derive(Debug)]
pub(super) struct Sink {
    pub(super) name: String,
    pub(super) config: SinkConfig,
    access: Access,
}

/// What sending takes, shared by all sinks.
#[derive(Debug)]
pub(super) struct Ways {
    poster: Poster,
    launcher: Launcher,
    /// For the identities of mails.
    namespace: String,
}

impl Ways {
    pub(super) fn new(launcher: Launcher, namespace: String) -> Self {
        Self { poster: Poster::default(), launcher, namespace }
    }
}

impl Sink {
    /// Reads the secrets.
    ///
    /// # Errors
    /// Which file cannot be read, or does not hold what it should; without its contents.
    pub(super) fn open(name: &str, config: SinkConfig) -> Result<Self, String> {
        let access = Access::read(&config.target).map_err(|error| format!("[notify.{name}] {error}"))?;
        Ok(Self { name: name.to_owned(), config, access })
    }

    /// What must not be handed on.
    pub(super) fn secrets(&self) -> &[String] {
        self.access.all()
    }

    /// Whether several messages may be told as one.
    pub(super) const fn digests(&self) -> bool {
        !matches!(self.config.target, Target::Web { form: WebForm::Healthchecks, .. })
    }

    /// Sends a letter once.
    pub(super) async fn send(&self, letter: &Letter, ways: &Ways) -> Answer {
        let answer = match &self.config.target {
            Target::Web { form, .. } => self.post(*form, letter, ways).await,
            Target::Mail(config) => in_time(email::send(config, &self.access, letter, &ways.namespace)).await,
            Target::Exec(program) => exec::run(program, &self.name, letter, &ways.launcher).await,
        };
        self.access.redacted(answer)
    }

    async fn post(&self, form: WebForm, letter: &Letter, ways: &Ways) -> Answer {
        let made = match form {
            WebForm::Webhook => webhook::request(&self.access, letter),
            WebForm::Slack => slack::request(&self.access, letter),
            WebForm::DingTalk => dingtalk::request(&self.access, letter),
            WebForm::Feishu => feishu::request(&self.access, letter),
            WebForm::WeCom => wecom::request(&self.access, letter),
            WebForm::Healthchecks => match healthchecks::request(&self.access, letter) {
                Ok(None) => return Answer::Taken("nothing to signal".to_owned()),
                Ok(Some(request)) => Ok(request),
                Err(error) => Err(error),
            },
        };
        match made {
            Ok(request) => in_time(ways.poster.post(request, judge_of(form))).await,
            Err(error) => Answer::Refused(error),
        }
    }
}

/// How the body of an answer with 200 is judged: none where the code alone counts.
fn judge_of(form: WebForm) -> http::Judge {
    match form {
        WebForm::DingTalk => dingtalk::judge,
        WebForm::Feishu => feishu::judge,
        WebForm::WeCom => wecom::judge,
        WebForm::Webhook | WebForm::Slack | WebForm::Healthchecks => |_| None,
    }
}

async fn in_time(trying: impl Future<Output = Answer>) -> Answer {
    let limit = format!("no answer within {} s", LONGEST_TRY.as_secs());
    tokio::time::timeout(LONGEST_TRY, trying).await.unwrap_or_else(|_| Answer::again(limit))
}

#[cfg(test)]
mod tests;
