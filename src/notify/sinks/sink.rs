//! One sink: by which way a letter goes, and within which time. When it is tried again is not decided here.

use crate::config::{SinkConfig, SinkTarget, WebForm};
use crate::exec::Launcher;
use crate::notify::letter::Letter;
use crate::notify::sinks::answer::{LONGEST_TRY, Receipt};
use crate::notify::sinks::http::{Judge, Poster};
use crate::notify::sinks::secrets::SinkAccess;
use crate::notify::sinks::{dingtalk, email, exec, feishu, healthchecks, slack, webhook, wecom};

/// A sink with its secrets.
#[derive(Debug)]
pub(in crate::notify) struct Sink {
    pub(in crate::notify) name: String,
    pub(in crate::notify) config: SinkConfig,
    access: SinkAccess,
}

/// What sending takes, shared by all sinks.
#[derive(Debug)]
pub(in crate::notify) struct Ways {
    poster: Poster,
    launcher: Launcher,
    /// For the identities of mails.
    namespace: String,
}

impl Ways {
    pub(in crate::notify) fn new(launcher: Launcher, namespace: String) -> Self {
        Self { poster: Poster::default(), launcher, namespace }
    }
}

impl Sink {
    /// Reads the secrets.
    ///
    /// # Errors
    /// Which file cannot be read, or does not hold what it should; without its contents.
    pub(in crate::notify) fn open(name: &str, config: SinkConfig) -> Result<Self, String> {
        let access = SinkAccess::read(&config.target).map_err(|error| format!("[notify.{name}] {error}"))?;
        Ok(Self { name: name.to_owned(), config, access })
    }

    /// What must not be handed on.
    pub(in crate::notify) fn secrets(&self) -> &[String] {
        self.access.all()
    }

    /// Whether several messages may be told as one.
    pub(in crate::notify) const fn digests(&self) -> bool {
        !matches!(self.config.target, SinkTarget::Web { form: WebForm::Healthchecks, .. })
    }

    /// Sends a letter once.
    pub(in crate::notify) async fn send(&self, letter: &Letter, ways: &Ways) -> Receipt {
        let answer = match &self.config.target {
            SinkTarget::Web { form, .. } => self.post(*form, letter, ways).await,
            SinkTarget::Mail(config) => email::send(config, &self.access, letter, &ways.namespace).await,
            SinkTarget::Exec(program) => exec::run(program, &self.name, letter, &ways.launcher).await,
        };
        self.access.about(healthchecks::named(letter)).redacted(answer)
    }

    async fn post(&self, form: WebForm, letter: &Letter, ways: &Ways) -> Receipt {
        let made = match form {
            WebForm::Webhook => webhook::request(&self.access, letter),
            WebForm::Slack => slack::request(&self.access, letter),
            WebForm::DingTalk => dingtalk::request(&self.access, letter),
            WebForm::Feishu => feishu::request(&self.access, letter),
            WebForm::WeCom => wecom::request(&self.access, letter),
            WebForm::Healthchecks => match healthchecks::request(&self.access, letter) {
                Ok(None) => return Receipt::Taken("nothing to signal, or no more: a later slot has ended".to_owned()),
                Ok(Some(request)) => Ok(request),
                Err(error) => Err(error),
            },
        };
        match made {
            Ok(request) => in_time(ways.poster.post(request, judge_of(form))).await,
            Err(error) => Receipt::Refused(error),
        }
    }
}

/// How the body of an answer with 200 is judged: none where the code alone counts.
fn judge_of(form: WebForm) -> Judge {
    match form {
        WebForm::DingTalk => dingtalk::judge,
        WebForm::Feishu => feishu::judge,
        WebForm::WeCom => wecom::judge,
        WebForm::Webhook | WebForm::Slack | WebForm::Healthchecks => |_| None,
    }
}

async fn in_time(trying: impl Future<Output = Receipt>) -> Receipt {
    let limit = format!("no answer within {} s", LONGEST_TRY.as_secs());
    tokio::time::timeout(LONGEST_TRY, trying).await.unwrap_or_else(|_| Receipt::again(limit))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
