//! One message that shows whether a sink is reached: nothing is claimed, and nothing is recorded.

use chrono::{DateTime, Utc};

use crate::config::SinkConfig;
use crate::event::NoticeKind;
use crate::exec::Launcher;
use crate::job::{JobName, Namespace, NodeName};
use crate::notify::letter::{Letter, LetterItem, Particulars, Sender};
use crate::notify::notice::Notice;
pub(crate) use crate::notify::sinks::Receipt as TestReceipt;
use crate::notify::sinks::{Sink, Ways};
use crate::slot::{SlotKey, Token};

/// TLS takes the provider of this process, which somebody has to name before the first connection.
pub(crate) fn use_ring() {
    // It may be there already: then it is the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// What is sent where, by whom.
#[derive(Debug)]
pub(crate) struct TestMessage<'a> {
    pub(crate) sink: &'a str,
    pub(crate) config: &'a SinkConfig,
    /// As which event; none for a plain test.
    pub(crate) event: Option<NoticeKind>,
    pub(crate) namespace: Namespace,
    pub(crate) node: NodeName,
    pub(crate) page: Option<String>,
    /// Makes each test a message of its own.
    pub(crate) token: Token,
    pub(crate) now: DateTime<Utc>,
}

/// Sends it once.
///
/// # Errors
/// A secret that cannot be read.
pub(crate) async fn send_test(test: TestMessage<'_>, launcher: Launcher) -> Result<TestReceipt, String> {
    let sink = Sink::open(test.sink, test.config.clone())?;
    launcher.hide(sink.secrets());
    let sender = Sender { namespace: test.namespace.clone(), node: test.node.clone(), page: test.page.clone() };
    let id = format!("test-{}", test.token);
    let example = test.event.and_then(|kind| example(kind, &test));
    let letter = match example {
        Some(item) => Letter::of(&item, &sender, test.config, test.now).into_trial(id, test.sink, test.config),
        None => Letter::test(test.sink, &sender, test.config, id, test.now),
    };
    Ok(sink.send(&letter, &Ways::new(launcher, test.namespace.to_string())).await)
}

/// An event of a job that does not exist.
fn example(kind: NoticeKind, test: &TestMessage<'_>) -> Option<LetterItem> {
    let job = JobName::new("example").ok()?;
    let hour = test.now.timestamp().div_euclid(3_600) * 3_600;
    let slot = SlotKey::of(DateTime::from_timestamp(hour, 0)?)?;
    let notice = match kind {
        NoticeKind::NodeSilent | NoticeKind::ConfigRejected => Notice::of_node(kind, &test.node, test.now),
        NoticeKind::Paused | NoticeKind::Resumed => Notice { stamp: Some(test.now), ..Notice::of_job(kind, &job) },
        NoticeKind::Started | NoticeKind::AttemptFailed | NoticeKind::Reminder => {
            Notice::of_slot(kind, &job, slot).numbered(1)
        }
        _ => Notice::of_slot(kind, &job, slot),
    };
    Some(LetterItem { key: notice.key(test.sink)?, notice, known: Particulars::default() })
}
