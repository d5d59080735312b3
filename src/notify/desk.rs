//! The machine and the lookout together, with the sinks of the file: what is heard becomes messages for those who are to be told.
//! Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock::{Mono, Now, between};
use crate::config::{SinkConfig, SinkTarget, WebForm};
use crate::event::NoticeKind;
use crate::job::{JobName, JobSpec, NodeName};
use crate::message::{UntoldMessage, UntoldStage};
use crate::notify::ear::Word;
use crate::notify::entry::SinkRule;
use crate::notify::lookout::Lookout;
use crate::notify::machine::Courier;
use crate::notify::notice::Notice;
use crate::observe::view::{NodeState, NodeView};
use crate::slot::{JobLatest, Token};
use crate::store::{HEARD_AGAIN, Pause};

/// A node that was lost longer ago is no news for one that starts.
const NEWS_OF_NODES: Duration = Duration::from_secs(600);

/// The pauses that the store knows of, and its clock when it said so.
pub(super) type PausesAt = (DateTime<Utc>, Vec<(JobName, Pause)>);

/// A lost node, with when it was heard last.
type LostNode = (NodeName, DateTime<Utc>);
type LostNodes = BTreeSet<LostNode>;

/// What a look at the store has found. What could not be read is not there.
#[derive(Debug, Default)]
pub(super) struct Sighting {
    pub(super) latest: Vec<(JobName, JobLatest)>,
    pub(super) pauses: Option<PausesAt>,
    pub(super) nodes: Option<Vec<NodeView>>,
    pub(super) untold: Vec<UntoldMessage>,
}

/// What a look is to find out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LookRequest {
    pub(super) jobs: Vec<JobName>,
    pub(super) pauses: bool,
    pub(super) nodes: bool,
}

/// What a sink is told.
#[derive(Clone, Debug)]
struct Subscription {
    events: BTreeSet<NoticeKind>,
    remind_after: Option<Duration>,
    /// Only a slot's first start is one.
    first_starts: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Dispatch {
    node: NodeName,
    pub(super) courier: Courier,
    lookout: Lookout,
    subscriptions: BTreeMap<String, Subscription>,
    /// Jobs that were paused at the last look; none before the first.
    paused: Option<BTreeMap<JobName, DateTime<Utc>>>,
    /// Nodes that were lost at the last look and of which nothing is to be told any more; none before the first.
    lost: Option<LostNodes>,
    /// Nodes that were lost at the last look for the first time: after an outage of the store all are, until they are heard again.
    /// Since when, by this node's clock.
    doubted: BTreeMap<LostNode, Mono>,
}

impl Dispatch {
    pub(super) fn new(node: NodeName, asks: bool, first_token: Token) -> Self {
        Self {
            node,
            courier: Courier::new(asks, first_token),
            lookout: Lookout::default(),
            subscriptions: BTreeMap::new(),
            paused: None,
            lost: None,
            doubted: BTreeMap::new(),
        }
    }

    /// Takes these sinks.
    pub(super) fn set_sinks(&mut self, sinks: &BTreeMap<String, (SinkConfig, bool)>, now: Now) {
        let rule = |(name, (config, digests)): (&String, &(SinkConfig, bool))| {
            // A signal to a check counts at once.
            let spread = if *digests { config.spread } else { Duration::ZERO };
            (name.clone(), SinkRule { digests: *digests, spread })
        };
        self.courier.set_sinks(&sinks.iter().map(rule).collect(), now);
        let subscription = |(name, (config, _)): (&String, &(SinkConfig, bool))| {
            let first_starts = matches!(config.target, SinkTarget::Web { form: WebForm::Healthchecks, .. });
            let (events, remind_after) = (config.events.clone(), config.remind_after);
            (name.clone(), Subscription { events, remind_after, first_starts })
        };
        self.subscriptions = sinks.iter().map(subscription).collect();
    }

    /// Takes these jobs.
    pub(super) fn set_jobs(&mut self, jobs: &[Arc<JobSpec>], now: Now) {
        self.lookout.set_jobs(jobs, now.wall);
    }

    /// The job of this name.
    pub(super) fn spec(&self, job: &JobName) -> Option<Arc<JobSpec>> {
        self.lookout.spec(job).cloned()
    }

    /// What the store is to be asked; none where nobody is to be told of anything.
    pub(super) fn wanted(&self, now: Now) -> Option<LookRequest> {
        let asks = |kind| self.subscriptions.values().any(|sink| sink.events.contains(&kind));
        if self.subscriptions.is_empty() {
            return None;
        }
        let pauses = asks(NoticeKind::Paused) || asks(NoticeKind::Resumed) || self.lookout.is_any_late(now.wall);
        Some(LookRequest { jobs: self.lookout.names(), pauses, nodes: asks(NoticeKind::NodeSilent) })
    }

    /// Something happened on this node.
    pub(super) fn hear(&mut self, now: Now, word: Word) {
        let notices = match word {
            Word::Slot(job, slot, heard) => self.lookout.hear(&job, slot, heard, now.wall),
            Word::Missed(job, slots, first, last) => self.lookout.missed(&job, slots, first, last),
            Word::Refused(error) => {
                let rejected = Notice::of_node(NoticeKind::ConfigRejected, &self.node, whole_seconds(now.wall));
                vec![Notice { words: Some(error), ..rejected }]
            }
            Word::Plan => Vec::new(),
        };
        notices.iter().for_each(|notice| self.tell(now, notice));
    }

    /// The store was looked at.
    pub(super) fn see(&mut self, now: Now, found: Sighting) {
        for message in found.untold {
            self.adopt(now, &message);
        }
        for (job, latest) in &found.latest {
            let notices = self.lookout.know(job, latest, now.wall);
            notices.iter().for_each(|notice| self.tell(now, notice));
        }
        if let Some((at, pauses)) = found.pauses {
            self.see_pauses(now, at, pauses);
        }
        match found.nodes {
            Some(nodes) => self.see_nodes(now, &nodes),
            // An outage may have begun: who is lost after it is looked at anew.
            None => self.doubted.clear(),
        }
        self.remind(now);
    }

    /// What somebody began to tell, and has not told: its claim is looked at again.
    fn adopt(&mut self, now: Now, message: &UntoldMessage) {
        if let Some(notice) = Notice::parse(&message.key).filter(|_| message.stage != UntoldStage::GivenUp) {
            self.courier.learn(now, &notice, message.key.sink());
        }
    }

    fn see_pauses(&mut self, now: Now, at: DateTime<Utc>, pauses: Vec<(JobName, Pause)>) {
        let lasting = pauses.iter().filter(|(_, pause)| pause.ended.is_none() && pause.remaining(at).is_some());
        let paused: BTreeMap<JobName, DateTime<Utc>> =
            lasting.map(|(job, pause)| (job.clone(), whole_seconds(pause.since))).collect();
        let names: Vec<JobName> = paused.keys().cloned().collect();
        let late = self.lookout.late(&names, now.wall);
        late.iter().for_each(|notice| self.tell(now, notice));
        if let Some(before) = self.paused.replace(paused.clone()) {
            let words = |job: &JobName| {
                let pause = pauses.iter().find(|(name, _)| name == job).map(|(_, pause)| pause.last())?;
                Some(format!("{}@{}: {}", pause.who, pause.host, pause.why))
            };
            let notice = |kind, job: &JobName, since: &DateTime<Utc>| Notice {
                stamp: Some(*since),
                words: words(job),
                ..Notice::of_job(kind, job)
            };
            let begun = paused.iter().filter(|(job, since)| before.get(*job) != Some(*since));
            let ended = before.iter().filter(|(job, _)| !paused.contains_key(*job));
            let notices: Vec<Notice> = begun
                .map(|(job, since)| notice(NoticeKind::Paused, job, since))
                .chain(ended.map(|(job, since)| notice(NoticeKind::Resumed, job, since)))
                .collect();
            notices.iter().for_each(|notice| self.tell(now, notice));
        }
    }

    fn see_nodes(&mut self, now: Now, nodes: &[NodeView]) {
        let lost = nodes.iter().filter(|node| node.state == NodeState::Lost);
        // Who is not heard itself, as after a store that took nothing, cannot tell who else is gone: the next look can.
        if lost.clone().any(|node| node.node == self.node) {
            self.doubted.clear();
            return;
        }
        let lost: LostNodes = lost.map(|node| (node.node.clone(), whole_seconds(node.seen))).collect();
        let is_news = |node: &(NodeName, DateTime<Utc>)| match &self.lost {
            Some(known) => !known.contains(node),
            None => between(node.1, now.wall) < NEWS_OF_NODES,
        };
        let (news, known): (LostNodes, LostNodes) = lost.into_iter().partition(is_news);
        let since = |node: &LostNode| self.doubted.get(node).copied().unwrap_or(now.mono);
        let (sure, doubted): (LostNodes, LostNodes) =
            news.into_iter().partition(|node| now.mono.since(since(node)) >= HEARD_AGAIN);
        let doubted = doubted.into_iter().map(|node| (node.clone(), since(&node))).collect();
        for (node, seen) in &sure {
            self.tell(now, &Notice::of_node(NoticeKind::NodeSilent, node, *seen));
        }
        self.lost = Some(&known | &sure);
        self.doubted = doubted;
    }

    /// Whether there are lost nodes that are to be looked at once more before they are told of.
    pub(super) fn is_in_doubt(&self) -> bool {
        !self.doubted.is_empty()
    }

    fn remind(&mut self, now: Now) {
        let sinks: Vec<(String, Duration)> =
            self.subscriptions.iter().filter_map(|(name, sink)| Some((name.clone(), sink.remind_after?))).collect();
        for (sink, every) in sinks {
            let due = self.lookout.reminders(every, &sink, now.wall);
            due.iter().for_each(|notice| self.courier.learn(now, notice, &sink));
        }
    }

    /// Tells those who are to be told: of a job the sinks that it names, of nodes all; and of both those that ask for the event.
    fn tell(&mut self, now: Now, notice: &Notice) {
        let named: Option<Vec<String>> =
            notice.job().map(|job| self.lookout.spec(job).map_or(Vec::new(), |spec| spec.notify.clone()));
        for (name, sink) in &self.subscriptions {
            let is_meant = named.as_ref().is_none_or(|named| named.contains(name));
            let is_later_start = notice.kind == NoticeKind::Started && sink.first_starts && notice.number != Some(1);
            if is_meant && sink.events.contains(&notice.kind) && !is_later_start {
                self.courier.learn(now, notice, name);
            }
        }
    }
}

/// What goes into keys has no parts of seconds.
fn whole_seconds(at: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp(at.timestamp(), 0).unwrap_or(at)
}

#[cfg(test)]
#[path = "desk_tests.rs"]
mod desk_tests;
