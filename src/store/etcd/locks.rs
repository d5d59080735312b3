//! Locks: a key with a document for each, compared by the revision of its last change. Hints are one key beside the marks, which the watch
//! on these looks at.

use std::collections::BTreeMap;
use std::time::Duration;

use super::EtcdStore;
use super::api::{ASCEND, BY_CHANGE, KeyValue, RangeRequest, RequestOp, TxnRequest, delete, put, unchanged};
use super::fault::Fault;
use super::keys::Keys;
use super::read::read_json;
use crate::job::LockName;
use crate::slot::Token;
use crate::store::keyed::Call;
use crate::store::locks::{LockWakeups, messages_to};
use crate::store::rules::LockState;
use crate::store::shelf::{LoadedLocks, LockDocument, LockShelf, StoredLock};

/// The most locks that one transaction names, of which a server takes 128 operations (`--max-txn-ops`). A request has fewer; who only
/// looks may name more.
const AT_ONCE: usize = 100;

/// The most locks that one purge looks at, those that were changed the longest ago: as many.
const PURGE_AT_ONCE: i64 = 100;

impl LockShelf for EtcdStore {
    type Version = i64;

    /// Below what a server takes in one request (`--max-request-bytes`), with the names and conditions beside them.
    const MOST_BYTES: usize = 1_400 * 1_024;

    async fn load_locks(&self, names: &[LockName]) -> Result<LoadedLocks<i64>, Fault> {
        let mut found = Vec::new();
        if names.is_empty() {
            found.extend(self.read(vec![RangeRequest::prefix(&self.keys.locks())]).await?);
        }
        for part in names.chunks(AT_ONCE) {
            found.extend(self.read(part.iter().map(|name| RangeRequest::key(&self.keys.lock(name))).collect()).await?);
        }
        // After everything was read, as for slots.
        let now = self.moment().now;
        let stored = found.iter().flatten().map(queue).collect::<Result<BTreeMap<_, _>, Fault>>()?;
        Ok(LoadedLocks { now, stored })
    }

    async fn save_locks(
        &self,
        call: &Call,
        documents: &[LockDocument<i64>],
        wakes: &[(Token, Token)],
    ) -> Result<bool, Fault> {
        let revision = |document: &LockDocument<i64>| document.read.unwrap_or(0);
        let compare = documents.iter().map(|document| unchanged(&self.keys.lock(&document.name), revision(document)));
        let written = |document: &LockDocument<i64>| {
            let text = document.text.clone()?;
            Some(put(&self.keys.lock(&document.name), text, 0))
        };
        let mut success: Vec<RequestOp> = documents.iter().filter_map(written).collect();
        if !wakes.is_empty() {
            success.push(put(&self.keys.lock_wake(), messages_to(wakes, usize::MAX).join("\n"), 0));
        }
        self.commit(call, TxnRequest::when(compare.collect(), success)).await
    }

    async fn load_names(&self) -> Result<Vec<LockName>, Fault> {
        let found = self.read(vec![RangeRequest::prefix(&self.keys.locks())]).await?;
        found.iter().flatten().map(name).collect()
    }

    async fn purge_idle(&self, call: &Call) -> Result<u64, Fault> {
        let all = RangeRequest::prefix(&self.keys.locks());
        let oldest = RangeRequest { limit: PURGE_AT_ONCE, sort_order: ASCEND, sort_target: BY_CHANGE, ..all };
        let at = self.moment();
        let (mut compare, mut success) = (Vec::new(), Vec::new());
        for kv in self.read(vec![oldest]).await?.into_iter().flatten() {
            // What cannot be read stays: somebody else wrote it.
            if read_json::<LockState>(&kv).is_ok_and(|state| state.is_idle(at.now, at.retention)) {
                let key = String::from_utf8_lossy(&kv.key);
                compare.push(unchanged(&key, kv.mod_revision));
                success.push(delete(&key));
            }
        }
        let gone = u64::try_from(success.len()).unwrap_or(u64::MAX);
        // Where somebody came in between, the next purge will do.
        let done = gone > 0 && self.commit(call, TxnRequest::when(compare, success)).await?;
        Ok(if done { gone } else { 0 })
    }

    fn listen_locks(&self, instance: Token) -> LockWakeups {
        self.listener.listen_locks(instance)
    }

    fn look_again(&self) -> Duration {
        super::POLL
    }
}

/// With the revision of its last change.
pub(super) fn queue(kv: &KeyValue) -> Result<StoredLock<i64>, Fault> {
    Ok((name(kv)?, (read_json(kv)?, kv.mod_revision)))
}

fn name(kv: &KeyValue) -> Result<LockName, Fault> {
    let name = Keys::name_of(&kv.key).and_then(|name| LockName::new(name).ok());
    name.ok_or_else(|| Fault::foreign(&String::from_utf8_lossy(&kv.key), "no lock has such a name"))
}
