//! etcd as a kind of store: what is said of it where it is chosen, where it keeps a slot, and what about a cluster can betray the
//! guard: its members, alarms, free space in the database. That is judged by `judge`, which is pure, and nothing is changed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::api::{
    AlarmRequest, AlarmResponse, MemberListResponse, Nothing, RequestOp, StatusResponse, TxnRequest, delete,
    delete_prefix, method,
};
use super::keys::Keys;
use super::target::{FORM, Target};
use super::{CAPABILITY, EtcdStore};
use crate::clock::Clock;
use crate::job::Namespace;
use crate::slot::Slot;
use crate::store::backend::{Backend, Files, KeptPart, Opened};
use crate::store::keyed::Call;
use crate::store::{Advice, Capability, Finding, Op, OpenError, StoreError, StoreOptions, Trial};

/// etcd.
pub(in crate::store) struct EtcdBackend;

#[async_trait]
impl Backend for EtcdBackend {
    fn capability(&self) -> Capability {
        CAPABILITY
    }

    fn check(&self, url: &str) -> Result<(), OpenError> {
        Target::parse(url, Duration::ZERO, Files::Unread).map(drop)
    }

    fn form(&self, _url: &str) -> String {
        FORM.to_owned()
    }

    fn advice(&self) -> Option<Advice> {
        Some(Advice {
            code: "no-store-clock",
            message: "etcd has no clock that nodes could share: each node's own judges when a slot begins and ends",
            hint: "keep every node's clock in step by NTP; leases do not depend on it",
        })
    }

    async fn open(
        &self,
        url: &str,
        options: StoreOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Opened>, OpenError> {
        Ok(Arc::new(EtcdStore::open(url, options, clock).await?))
    }

    fn where_kept(&self, _location: &str, namespace: &Namespace, slot: &Slot) -> Vec<(String, KeptPart)> {
        let keys = Keys::new(namespace);
        vec![
            (keys.mark(slot), KeptPart::Mark),
            (keys.attempts(slot), KeptPart::Attempts),
            (keys.document(slot), KeptPart::Log),
            (keys.outputs(slot), KeptPart::OutputsBelow),
            (keys.notes(slot), KeptPart::DecisionsBelow),
        ]
    }
}

/// `--quota-backend-bytes` unless it is set.
const QUOTA: u64 = 2 * 1024 * 1024 * 1024;

/// `AlarmType.NOSPACE`.
const NO_SPACE: i32 = 1;

/// What the cluster says of itself; what could not be asked for is missing.
#[derive(Clone, Debug, Default)]
struct ClusterFacts {
    status: Option<StatusResponse>,
    members: Option<usize>,
    alarms: Option<Vec<i32>>,
}

#[async_trait]
impl Opened for EtcdStore {
    async fn examine(&self) -> Vec<Finding> {
        let work = async {
            let status = self.link.ask::<_, StatusResponse>(method::STATUS, Nothing {}).await.ok();
            let members = self.link.ask::<_, MemberListResponse>(method::MEMBER_LIST, Nothing {}).await.ok();
            let alarms = self.link.ask::<_, AlarmResponse>(method::ALARM, AlarmRequest::default()).await.ok();
            let kinds = |answer: AlarmResponse| answer.alarms.iter().map(|alarm| alarm.kind).collect();
            ClusterFacts { status, members: members.map(|answer| answer.members.len()), alarms: alarms.map(kinds) }
        };
        let limit = self.options.op_timeout.saturating_mul(3);
        let said = tokio::time::timeout(limit, work).await.unwrap_or_default();
        judge(&said)
    }

    /// Removes what a trial wrote, in one step.
    async fn forget(&self, trial: &Trial) -> Result<(), StoreError> {
        let Trial { job, node, slots, lock } = trial;
        let of_job = job.iter().flat_map(|job| [self.keys.job(job), self.keys.pause(job), self.keys.latest(job)]);
        let of_job = of_job.chain(job.iter().map(|job| self.keys.messages(&job.clone().into())));
        let mut success: Vec<String> = of_job.chain(node.iter().map(|node| self.keys.node(node))).collect();
        success.extend(slots.iter().flat_map(|slot| self.keys.all_of(&slot.to_string()).0));
        success.extend(slots.iter().map(|slot| self.keys.lease(slot)));
        success.extend(lock.iter().map(|lock| self.keys.lock(lock)));
        let mut success: Vec<RequestOp> = success.iter().map(|key| delete(key)).collect();
        let below = slots.iter().flat_map(|slot| [self.keys.outputs(slot), self.keys.notes(slot)]);
        success.extend(below.map(|folder| delete_prefix(&folder)));
        let call = Call::new(Op::Purge);
        let request = TxnRequest::when(Vec::new(), success);
        self.within(&call, async { self.commit(&call, request).await.map(drop) }).await
    }
}

/// What is to be said of a cluster that says this of itself.
fn judge(said: &ClusterFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    match &said.status {
        None => {
            let effect = "doctor cannot warn before the database is full";
            let fix = "let a user with the role root run doctor";
            findings.push(Finding::warning("status", "this user may not ask for it", effect, fix));
        }
        Some(status) => {
            findings.push(Finding::ok("version", format!("etcd {}", status.version)));
            findings.push(quorum(status));
            findings.push(free_space(status));
        }
    }
    findings.extend(said.members.map(members));
    findings.push(match said.alarms.as_deref() {
        None => {
            let fix = "let a user with the role root run doctor";
            Finding::unknown("alarms", "this user may not ask for them", "doctor cannot warn of a full database", fix)
        }
        Some([]) => Finding::ok("alarms", "none"),
        Some(alarms) => {
            let what = if alarms.contains(&NO_SPACE) { "NOSPACE" } else { "CORRUPT" };
            let effect = "the cluster takes no writes: nothing is claimed";
            let fix = "etcdctl compact, etcdctl defrag, then etcdctl alarm disarm";
            Finding::fault("alarms", what, effect, fix)
        }
    });
    findings
}

fn quorum(status: &StatusResponse) -> Finding {
    if status.leader == 0 {
        let effect = "without a leader it answers nothing: nothing is claimed";
        return Finding::fault("leader", "none", effect, "start its members: a majority must be up");
    }
    Finding::ok("leader", "there is one")
}

fn free_space(status: &StatusResponse) -> Finding {
    let size = u64::try_from(status.db_size).unwrap_or(0);
    let found = format!("{} MiB in the database", size / (1024 * 1024));
    if size > QUOTA / 10 * 8 {
        let effect = "a full database takes no writes: nothing is claimed";
        let fix = "etcd --auto-compaction-retention=1h --quota-backend-bytes=8589934592, then etcdctl defrag";
        return Finding::warning("free-space", found, effect, fix);
    }
    Finding::ok("free-space", found)
}

fn members(count: usize) -> Finding {
    let found = format!("{count}");
    match count {
        0..=1 => {
            let effect = "when this member is down there is no other: nothing starts";
            Finding::warning("members", found, effect, "etcd: run three members")
        }
        even if even % 2 == 0 => {
            let effect = format!("{even} members tolerate no more failures than {}", even - 1);
            Finding::warning("members", found, &effect, "etcd: run an odd number of members")
        }
        _ => Finding::ok("members", found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Severity;

    #[test]
    fn the_keys_are_those_that_stores_md_promises() {
        let slot = Slot::parse("billing", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
        let keys = EtcdBackend.where_kept("etcd://h", &Namespace::new("prod").unwrap(), &slot);
        let names: Vec<&str> = keys.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "/cronward/prod/mark/billing@2026-11-21T14Z",
                "/cronward/prod/attempts/billing@2026-11-21T14Z",
                "/cronward/prod/slot/billing@2026-11-21T14Z",
                "/cronward/prod/output/billing@2026-11-21T14Z/",
                "/cronward/prod/note/billing@2026-11-21T14Z/",
            ]
        );
    }

    fn trouble(change: impl Fn(&mut ClusterFacts)) -> Vec<String> {
        let status = StatusResponse { version: "3.4.23".to_owned(), db_size: 1, leader: 7 };
        let mut said = ClusterFacts { status: Some(status), members: Some(3), alarms: Some(vec![]) };
        change(&mut said);
        let bad = judge(&said).into_iter().filter(|finding| finding.severity > Severity::Ok);
        bad.map(|finding| format!("{} {}", finding.check, finding.severity.as_str())).collect()
    }

    #[test]
    fn each_thing_that_can_betray_the_guard_is_told_with_its_weight() {
        assert_eq!(trouble(|_| ()), [""; 0]);
        assert_eq!(trouble(|said| said.alarms = Some(vec![NO_SPACE])), ["alarms error"]);
        assert_eq!(trouble(|said| said.members = Some(1)), ["members warning"]);
        assert_eq!(trouble(|said| said.members = Some(4)), ["members warning"]);
        assert_eq!(trouble(|said| said.status.as_mut().unwrap().leader = 0), ["leader error"]);
        assert_eq!(trouble(|said| said.status.as_mut().unwrap().db_size = 2_000_000_000), ["free-space warning"]);
        assert_eq!(trouble(|said| said.status = None), ["status warning"]);
    }
}
