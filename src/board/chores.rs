//! The calls that are made from time to time, besides those for slots.

use crate::board::sheet::Sheet;
use crate::job::JobName;
use crate::message::Topic;

/// Jobs that one call asks for.
const AT_ONCE: usize = 250;

/// One call that is to be made.
#[derive(Debug)]
pub(super) enum Chore {
    Nodes,
    Jobs,
    Pauses,
    Latest(Vec<JobName>),
    Untold(Vec<Topic>),
    /// No call: time has passed.
    Doubt,
}

impl Chore {
    /// How these jobs fare; `messages`: also which messages, of all jobs, were not delivered.
    pub(super) fn by_job(sheet: &Sheet, names: &[JobName], messages: bool) -> Vec<Self> {
        let latest = names.chunks(AT_ONCE).map(|names| Self::Latest(names.to_vec())).collect::<Vec<_>>();
        let topics = sheet.told_about().map(Topic::from).chain([Topic::Cluster]);
        let topics: Vec<Topic> = topics.filter(|_| messages).collect();
        let untold = topics.chunks(AT_ONCE).map(|topics| Self::Untold(topics.to_vec()));
        latest.into_iter().chain(untold).collect()
    }
}
