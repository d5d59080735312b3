//! ZooKeeper as a kind of store: what is said of it where it is chosen, where it keeps a slot, and what about an ensemble can betray
//! the guard: how many servers it has. That is judged by `judge`, which is pure, and nothing is changed.
//! And what is removed there: a trial, and what was kept for its time. Slots are listed by their names, which tell when they began, so only
//! those that may be old enough are read.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use zookeeper_client::Error;

use super::batch::Batch;
use super::fault::Fault;
use super::link::{FORM, Session, SessionTarget};
use super::nodes::{Found, NodeRequest, Paths, SlotText, read_json};
use super::{CAPABILITY, ZookeeperStore};
use crate::clock::{Clock, earlier};
use crate::job::Namespace;
use crate::slot::Slot;
use crate::store::backend::{Backend, KeptPart, Opened};
use crate::store::keyed::Call;
use crate::store::shelf::LockShelf as _;
use crate::store::state::Moment;
use crate::store::{Capability, Finding, Op, OpenError, StoreError, StoreOptions, Trial};

/// ZooKeeper.
pub(in crate::store) struct ZookeeperBackend;

#[async_trait]
impl Backend for ZookeeperBackend {
    fn capability(&self) -> Capability {
        CAPABILITY
    }

    fn check(&self, url: &str) -> Result<(), OpenError> {
        SessionTarget::parse(url).map(drop)
    }

    fn form(&self, _url: &str) -> String {
        FORM.to_owned()
    }

    async fn open(
        &self,
        url: &str,
        options: StoreOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Opened>, OpenError> {
        Ok(Arc::new(ZookeeperStore::open(url, options, clock).await?))
    }

    fn where_kept(&self, location: &str, namespace: &Namespace, slot: &Slot) -> Vec<(String, KeptPart)> {
        // What follows the servers in the url is above everything.
        let (_, servers) = location.split_once("://").unwrap_or(("", location));
        let chroot = servers.find('/').and_then(|slash| servers.get(slash..)).unwrap_or("").trim_end_matches('/');
        let paths = Paths::new(chroot, namespace);
        vec![
            (paths.slot(slot), KeptPart::AllButOutputs),
            (paths.note(slot), KeptPart::Decisions),
            (paths.pauses(), KeptPart::Pauses),
        ]
    }
}

/// Where an ensemble keeps its own list of servers (ZooKeeper 3.5 or later); anybody may read it.
const SERVERS: &str = "/zookeeper/config";

#[async_trait]
impl Opened for ZookeeperStore {
    async fn examine(&self) -> Vec<Finding> {
        let Ok(session) = self.link.session().await else { return judge(None) };
        let limit = self.options.op_timeout;
        let listed = tokio::time::timeout(limit, session.client.get_data(SERVERS)).await;
        let listed = listed.ok().and_then(Result::ok).map(|(data, _)| String::from_utf8_lossy(&data).into_owned());
        judge(listed.as_deref())
    }

    /// Removes what a trial wrote, one node after the other.
    async fn forget(&self, trial: &Trial) -> Result<(), StoreError> {
        let call = Call::new(Op::Purge);
        let work = async {
            let session = self.link.session().await?;
            call.sending();
            for path in self.written(&session, trial).await? {
                match session.client.delete(&path, None).await {
                    Ok(()) | Err(Error::NoNode) => {}
                    Err(error) => return Err(Fault::from(error)),
                }
            }
            match &trial.job {
                Some(job) => self.forget_pause(&call, job).await,
                None => Ok(()),
            }
        };
        self.within(&call, work).await
    }
}

impl ZookeeperStore {
    /// The nodes of a trial, the lower ones first.
    async fn written(&self, session: &Session, trial: &Trial) -> Result<Vec<String>, Fault> {
        let of_job = trial
            .job
            .iter()
            .flat_map(|job| [self.paths.job(job), self.paths.latest(job), self.paths.messages(&job.clone().into())]);
        let mut paths: Vec<String> = of_job.chain(trial.node.iter().map(|node| self.paths.node(node))).collect();
        paths.extend(trial.lock.iter().map(|lock| self.paths.lock(lock)));
        for slot in &trial.slots {
            let folder = self.paths.slot(slot);
            let outputs = self.children(session, folder.clone()).await?;
            paths.extend(outputs.iter().map(|name| format!("{folder}/{name}")));
            paths.extend([folder, self.paths.note(slot), self.paths.lease(slot)]);
        }
        if let Some(job) = trial.job.as_ref().filter(|_| !trial.slots.is_empty()) {
            paths.extend([self.paths.slots_of(job.as_str()), self.paths.notes_of(job.as_str())]);
            paths.extend([self.paths.leases_of(job.as_str())]);
        }
        Ok(paths)
    }
}

/// What is to be said of an ensemble with this list of servers.
fn judge(listed: Option<&str>) -> Vec<Finding> {
    let Some(listed) = listed else {
        let effect = "doctor cannot warn of an ensemble that tolerates no failure";
        let fix = "let the user read /zookeeper/config";
        return vec![Finding::unknown("servers", "the ensemble does not tell them", effect, fix)];
    };
    let voting = |line: &&str| line.starts_with("server.") && !line.contains(":observer");
    let count = listed.lines().filter(voting).count();
    vec![match count {
        // A server alone lists nobody.
        0 | 1 => {
            let effect = "when this server is down there is no other: nothing starts";
            Finding::warning("servers", "one", effect, "zoo.cfg: run three servers")
        }
        even if even % 2 == 0 => {
            let effect = format!("{even} servers tolerate no more failures than {}", even - 1);
            Finding::warning("servers", format!("{even}"), &effect, "zoo.cfg: run an odd number of servers")
        }
        odd => Finding::ok("servers", format!("{odd}")),
    }]
}

/// The most slots that one purge looks at.
const AT_ONCE: usize = 200;

/// Slots of one request.
const IN_ONE: usize = 20;

impl ZookeeperStore {
    /// Removes a batch of what is older than the retention; answers how many slots went. A slot whose marker lasts longer
    /// than its records is left until that has ended.
    pub(super) async fn purge_slots(&self, call: &Call) -> Result<u64, Fault> {
        let session = self.link.session().await?;
        let at = self.moment(&session, false).await?;
        self.remove_old_notes(call, &session).await?;
        self.remove_old_latest(call, &session).await?;
        self.remove_old_messages(call, &session).await?;
        self.purge_idle(call).await?;
        let jobs = self.children(&session, self.paths.slots()).await?;
        let folders = jobs.iter().map(|job| self.paths.slots_of(job));
        let paths = self.long_begun(&session, folders, earlier(at.now, at.retention), AT_ONCE).await?;
        let mut gone = 0;
        for part in paths.chunks(IN_ONE) {
            let asks = part.iter().flat_map(|path| {
                let lease = self.paths.lease_of(path).unwrap_or_default();
                [NodeRequest::Data(path.clone()), NodeRequest::Children(path.clone()), NodeRequest::Data(lease)]
            });
            let found = self.read(&session, asks.collect()).await?;
            for (path, found) in part.iter().zip(found.chunks(3)) {
                gone += u64::from(self.remove(call, &session, path, found, at).await?);
            }
        }
        Ok(gone)
    }

    /// Nodes in these folders of slots that began before this, so many at most; the oldest of each folder first.
    pub(super) async fn long_begun(
        &self,
        session: &Session,
        folders: impl Iterator<Item = String> + Send,
        before: DateTime<Utc>,
        most: usize,
    ) -> Result<Vec<String>, Fault> {
        let mut paths = Vec::new();
        for folder in folders {
            let mut old: Vec<(DateTime<Utc>, String)> = Vec::new();
            for name in self.children(session, folder.clone()).await? {
                let start = Paths::key_of(&name).map(|key| key.start()).filter(|start| *start <= before);
                old.extend(start.map(|start| (start, format!("{folder}/{name}"))));
            }
            old.sort();
            paths.extend(old.into_iter().map(|(_, path)| path).take(most - paths.len()));
            if paths.len() == most {
                break;
            }
        }
        Ok(paths)
    }

    pub(super) async fn children(&self, session: &Session, folder: String) -> Result<Vec<String>, Fault> {
        match self.read(session, vec![NodeRequest::Children(folder)]).await?.pop() {
            Some(Found::Children(names)) => Ok(names),
            _ => Ok(Vec::new()),
        }
    }

    async fn remove(
        &self,
        call: &Call,
        session: &Session,
        path: &str,
        found: &[Found],
        at: Moment,
    ) -> Result<bool, Fault> {
        let [Found::Data(data, stat), Found::Children(outputs), lease] = found else { return Ok(false) };
        let text: SlotText = read_json(path, data)?;
        let stands = text.mark.is_some_and(|mark| mark.until().is_none_or(|until| until > at.now));
        let kept = text.log.is_some_and(|log| !log.is_outdated(at));
        if stands || kept {
            return Ok(false);
        }
        let mut writer = Batch::new(&session.client);
        for name in outputs {
            writer.add_delete(&format!("{path}/{name}"), None)?;
        }
        if let (Found::Data(..), Some(lease)) = (lease, self.paths.lease_of(path)) {
            writer.add_delete(&lease, None)?;
        }
        writer.add_delete(path, Some(stat.version))?;
        self.committed(call, &mut writer).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Severity;

    #[test]
    fn the_nodes_are_those_that_stores_md_promises() {
        let slot = Slot::parse("billing", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
        for (location, chroot) in [("zookeeper://a:1,b", ""), ("zookeeper://a/ops/cron", "/ops/cron")] {
            let nodes = ZookeeperBackend.where_kept(location, &Namespace::new("prod").unwrap(), &slot);
            let names: Vec<&str> = nodes.iter().map(|(name, _)| name.as_str()).collect();
            let root = format!("{chroot}/cronward/prod");
            assert_eq!(
                names,
                [
                    format!("{root}/slot/billing/2026-11-21T14Z"),
                    format!("{root}/note/billing/2026-11-21T14Z"),
                    format!("{root}/pauses"),
                ]
            );
        }
    }

    fn severity(listed: &str) -> Severity {
        judge(Some(listed)).remove(0).severity
    }

    #[test]
    fn an_ensemble_of_one_or_of_an_even_number_is_warned_of() {
        let server = |n: usize| format!("server.{n}=h{n}:2888:3888:participant;2181\n");
        let servers = |count: usize| (1..=count).map(server).collect::<String>() + "version=100000000";
        assert_eq!(
            [0, 1, 2, 3, 4, 5].map(|count| severity(&servers(count)) == Severity::Ok),
            [false, false, false, true, false, true]
        );
        let observed = servers(3) + "\nserver.4=h4:2888:3888:observer;2181";
        assert_eq!(severity(&observed), Severity::Ok);
    }
}
