//! A check of Healthchecks, here or elsewhere: a dead man's switch that is outside of the cluster. `{job}` in the url is the job's name.

use url::Url;

use crate::event::NoticeKind;
use crate::notify::letter::Letter;
use crate::notify::sinks::http::Outgoing;
use crate::notify::sinks::secrets::{SinkAccess, filled};

/// The ping of a letter; none where there is nothing to signal, or where it would turn the check back to what an earlier slot had come to.
pub(super) fn request(access: &SinkAccess, letter: &Letter) -> Result<Option<Outgoing>, String> {
    let Some(ping) = &letter.ping else {
        // A test: a line in the check's log, which changes nothing.
        return Ok(Some(outgoing(&access.url()?, Some("log"), named(letter), None, letter.text())));
    };
    let Some(signal) = signal(ping.kind).filter(|_| !ping.outdated) else { return Ok(None) };
    let url = access.url()?;
    let body = if ping.output.is_empty() { letter.text() } else { ping.output.clone() };
    Ok(Some(outgoing(&url, signal, named(letter), Some(&ping.run), body)))
}

/// What stands in the url where it has a place for the job's name.
pub(super) fn named(letter: &Letter) -> &str {
    letter.ping.as_ref().map_or("test", |ping| ping.job.as_str())
}

/// What follows the check's url; the url alone for a success, and nothing at all for what a check has no signal for.
const fn signal(kind: NoticeKind) -> Option<Option<&'static str>> {
    match kind {
        NoticeKind::Started => Some(Some("start")),
        NoticeKind::AttemptFailed => Some(Some("log")),
        NoticeKind::Succeeded => Some(None),
        NoticeKind::Failed | NoticeKind::Missed => Some(Some("fail")),
        _ => None,
    }
}

fn outgoing(base: &Url, signal: Option<&str>, job: &str, run: Option<&str>, body: String) -> Outgoing {
    let mut url = base.clone();
    let path = filled(url.path(), job);
    let path = path.trim_end_matches('/').to_owned();
    url.set_path(&signal.map_or(path.clone(), |signal| format!("{path}/{signal}")));
    if let Some(run) = run {
        url.query_pairs_mut().append_pair("rid", run);
    }
    Outgoing { url, kind: "text/plain; charset=utf-8", headers: Vec::new(), body }
}
