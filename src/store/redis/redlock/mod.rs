//! Redlock over independent Redis masters (`docs/redlock.md`): asks each of them, and lets `store::redlock` decide.
//!
//! - Each master is a [`super::RedisStore`] of its own, with its own connection and the same keys and scripts.
//! - A claim has two halves, `lua/reserve.lua` and `lua/grant.lua`; what came to nothing is taken back by `lua/undo.lua`.
//! - `masters` asks all at once and waits no longer than it takes a majority, and a little grace.
//!
//! Nothing here weighs an answer; nothing here asks a master the same thing twice, but where a contest is undecided.

mod adapter;
mod claim;
#[cfg(feature = "fuzzing")]
pub(super) mod fuzzing;
mod master;
mod masters;
mod verdict;

pub(in crate::store) use adapter::CAPABILITY;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::job::JobName;
use crate::store::hints::Hints;
use crate::store::redis::RedisStore;
use crate::store::redis::members::Members;
use crate::store::redis::target::check as check_one;
use crate::store::redlock::Quorum;
use crate::store::{Op, OpenError, StoreError, StoreOptions, redact};
use masters::{Heard, Masters};

/// What a url says.
#[derive(Debug)]
struct QuorumTarget {
    masters: Vec<String>,
    quorum: Quorum,
    longest_lease: Duration,
}

impl QuorumTarget {
    fn parse(url: &str) -> Result<Self, OpenError> {
        let members = Members::parse(url, 6_379, &["longest_lease"])?;
        let refuse = |message: String| members.refuse(&message);
        let mut known = BTreeSet::new();
        if let Some(twice) = members.hosts.iter().find(|one| !known.insert((one.host.to_lowercase(), one.port))) {
            return Err(refuse(format!("it names {}:{} twice: each master counts once", twice.host, twice.port)));
        }
        let quorum = Quorum::of(members.hosts.len()).map_err(|error| refuse(error.to_string()))?;
        let longest_lease = members.parameter("longest_lease").map_or(Ok(Duration::ZERO), seconds).map_err(refuse)?;
        Ok(Self { masters: members.urls(), quorum, longest_lease })
    }
}

/// Refuses a url for its text, and for that of the masters' urls.
pub(in crate::store::redis) fn check(url: &str) -> Result<(), OpenError> {
    QuorumTarget::parse(url)?.masters.iter().try_for_each(|master| check_one(master))
}

/// Whole seconds or minutes.
fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || format!("longest_lease={text:?} is not a duration: write 60s or 5m");
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let count: u32 = digits.parse().map_err(|_| wrong())?;
    match unit {
        "s" => Ok(Duration::from_secs(u64::from(count))),
        "m" => Ok(Duration::from_secs(u64::from(count) * 60)),
        _ => Err(wrong()),
    }
}

/// A store whose leases stand on a majority of independent Redis masters.
#[derive(Debug)]
pub struct RedlockStore {
    masters: Masters,
    hints: Hints,
    options: StoreOptions,
    location: String,
    /// What the url says.
    longest_lease: Duration,
    /// The longest that this process has asked for, by job: a file that was read again may have a shorter one by now.
    asked: Mutex<BTreeMap<JobName, Duration>>,
    clock: Arc<dyn Clock>,
}

impl RedlockStore {
    /// Opens the store at `redlock://` or `redlocks://` (docs/stores.md has the forms). Only the url is judged here.
    pub async fn open(url: &str, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let target = QuorumTarget::parse(url)?;
        let patience = Masters::patience(options.op_timeout);
        let mut masters = Vec::new();
        for master in &target.masters {
            let options = StoreOptions { op_timeout: patience, ..options.clone() };
            masters.push(RedisStore::open(master, options).await?);
        }
        let masters = Masters::new(masters, target.quorum, options.op_timeout);
        let location = redact(url);
        let (hints, longest_lease, asked) = (Hints::of_many(), target.longest_lease, Mutex::default());
        Ok(Self { masters, hints, options, location, longest_lease, asked, clock })
    }

    /// The longest lease of the job that is known here, when this one is asked for.
    fn longest_lease(&self, job: &JobName, asked: Duration) -> Duration {
        let mut known = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let longest = known.get(job).copied().unwrap_or_default().max(asked);
        known.insert(job.clone(), longest);
        longest.max(self.longest_lease)
    }

    /// The answer that was weighed, or the error that says why there is none.
    fn settled<T, A>(&self, op: Op, heard: Heard<A>, answer: Option<T>) -> Result<T, StoreError> {
        answer.ok_or_else(|| self.masters.too_few(op, &self.location, heard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        QuorumTarget::parse(url).unwrap_err().to_string()
    }

    #[test]
    fn every_master_gets_the_login_the_database_and_the_files_of_tls() {
        let target = QuorumTarget::parse("redlock://u:p%2Fw@a,b:7000,[::1]/2?longest_lease=5m").unwrap();
        let masters = ["redis://u:p%2Fw@a:6379/2", "redis://u:p%2Fw@b:7000/2", "redis://u:p%2Fw@[::1]:6379/2"];
        assert_eq!(target.masters, masters);
        assert_eq!((target.quorum.majority(), target.longest_lease.as_secs()), (2, 300));
        let target = QuorumTarget::parse("redlocks://a,b,c?ca=/etc/a%20b.pem").unwrap();
        assert_eq!(target.masters[0], "rediss://a:6379/?ca=/etc/a%20b.pem");
        let target = QuorumTarget::parse("redlocks://a,b,c?key=/k.pem&cert=/c.pem&ca=/a.pem").unwrap();
        assert_eq!(target.masters[2], "rediss://c:6379/?ca=/a.pem&cert=/c.pem&key=/k.pem");
    }

    #[test]
    fn what_makes_no_quorum_is_refused() {
        assert!(refused("redlock://a").contains("redis://"));
        assert!(refused("redlock://a,b").contains("2 master"));
        assert!(refused("redlock://a,b,c,d").contains("tolerate no more failures than 3"));
        assert!(refused("redlock://a,b,A:6379").contains("twice"));
        assert!(refused("redlock://a,,c").contains("host:port,host:port"));
        assert!(refused("redlock:a,b,c").contains("names no server"));
        assert!(refused("redlock://a,b,c?ca=/x").contains("not known"));
        assert!(refused("redlock://a,b,c?longest_lease=1h").contains("60s"));
    }

    #[test]
    fn a_refused_url_is_told_without_its_password() {
        for url in ["redlock://u:hunter2@a,b", "redlock://u:hunter2@a,b,c?x=1", "redlock://:hunter2@a,a,c"] {
            assert!(!refused(url).contains("hunter2"), "{}", refused(url));
        }
    }
}
