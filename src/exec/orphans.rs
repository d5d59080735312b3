//! Reaps what is nobody's. In a container the daemon is process 1, and inherits every process whose parent has ended: what a
//! keeper leaves that was killed. Each of them stays a zombie, with its number, until its parent has asked for its end.
//!
//! Never asks for the end of a keeper that this process has started: whoever attends to that one waits for it. Which ones these are
//! is a list of the whole process, because a process has one set of children.

use std::collections::BTreeSet;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, WaitOptions, getpid, waitpid};
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exec::processes::listed;

/// The keepers that are attended to. Locked from before one is started until it is listed, so that none is missed.
static KEEPERS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn keepers() -> MutexGuard<'static, BTreeSet<i32>> {
    KEEPERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this process inherits orphans.
fn is_first() -> bool {
    getpid().is_init()
}

/// A keeper that is attended to for as long as this is there.
#[derive(Debug)]
pub(super) struct Keeper {
    child: Child,
    /// Its number, where it is listed.
    listed: Option<i32>,
}

impl Keeper {
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        if !is_first() {
            return Ok(Self { child: command.spawn()?, listed: None });
        }
        let mut keepers = keepers();
        let child = command.spawn()?;
        let listed = child.id().and_then(|number| i32::try_from(number).ok());
        keepers.extend(listed);
        Ok(Self { child, listed })
    }
}

impl Deref for Keeper {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.child
    }
}

impl DerefMut for Keeper {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for Keeper {
    /// One that has not ended yet is an orphan from now on.
    fn drop(&mut self) {
        if let Some(number) = self.listed {
            keepers().remove(&number);
        }
    }
}

/// Reaps orphans, for a process that inherits them.
#[derive(Debug)]
pub struct Orphanage {
    ended: Signal,
}

impl Orphanage {
    /// None where this process is not process 1. Needs a tokio runtime with its drivers enabled.
    pub fn of_first_process() -> io::Result<Option<Self>> {
        if !is_first() {
            return Ok(None);
        }
        Ok(Some(Self { ended: signal(SignalKind::child())? }))
    }

    /// Reaps for ever.
    pub async fn tend(mut self) {
        while self.ended.recv().await.is_some() {
            // All of `/proc` is read: few processes in a container, but a node may have many runs.
            let _ = tokio::task::spawn_blocking(reap).await;
        }
    }
}

fn reap() {
    let own = getpid().as_raw_nonzero().get();
    let keepers = keepers();
    let orphans = listed().into_iter().filter(|stat| stat.parent == own && stat.ended && !keepers.contains(&stat.pid));
    for pid in orphans.filter_map(|stat| Pid::from_raw(stat.pid)) {
        // It has ended and is this process's own: there is nothing to wait for, and nobody else who asks.
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}
