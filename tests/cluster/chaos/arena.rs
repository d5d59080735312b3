//! Drives a plan: begins and ends each fault at its time, keeps the nodes going, and enters what was done.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use rustix::process::{Pid, Signal, kill_process};

use super::backend::Backend;
use super::book::Book;
use super::fault::{Fault, NodeFault, RunFault};
use super::fleet::Fleet;
use super::folder::Folder;
use super::plan::Injection;
use super::record;

/// The driver looks so often; a fault is that late at most.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Everything that takes part.
pub(super) struct Arena<'a> {
    pub(super) folder: Folder,
    pub(super) fleet: Fleet,
    pub(super) backend: &'a mut dyn Backend,
    pub(super) book: Book,
}

/// A fault that lasts.
struct Lasting {
    injection: Injection,
    target: String,
    at: DateTime<Utc>,
    ends: Instant,
    /// The process of the run that it struck.
    process: Option<Pid>,
}

impl Arena<'_> {
    /// Injects all of a plan, and ends all of it.
    pub(super) fn suffer(&mut self, plan: &[Injection]) {
        let begun = Instant::now();
        let mut coming = plan.iter().peekable();
        let mut lasting: Vec<Lasting> = Vec::new();
        while coming.peek().is_some() || !lasting.is_empty() {
            while let Some(injection) = coming.next_if(|injection| begun.elapsed() >= injection.at) {
                lasting.extend(self.begin(injection));
            }
            let over = |fault: &mut Lasting| fault.ends <= Instant::now();
            let over: Vec<Lasting> = lasting.extract_if(.., over).collect();
            over.into_iter().for_each(|fault| self.end(&fault));
            self.rest();
        }
    }

    /// Lets time pass without faults.
    pub(super) fn live(&mut self, span: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < span {
            self.rest();
        }
    }

    fn rest(&mut self) {
        self.fleet.tend(&self.folder);
        std::thread::sleep(LOOK_EVERY);
    }

    /// None when there was no run to strike.
    fn begin(&mut self, injection: &Injection) -> Option<Lasting> {
        let Injection { fault, node, pick, lasts, .. } = *injection;
        let (at, mut process) = (Utc::now(), None);
        let mut target = "store".to_owned();
        match fault {
            Fault::Node(_) | Fault::Link(_) => target = self.fleet.name(node).to_owned(),
            Fault::Server(_) => {}
            Fault::Run(_) => {
                let run = record::going_on(&self.folder.read("work.jsonl"), pick)?;
                (target, process) = (run.slot, Some(run.process));
            }
        }
        match fault {
            Fault::Node(fault) => self.strike(node, fault, pick),
            Fault::Link(fault) => self.backend.spoil(node, fault, pick),
            Fault::Server(fault) => self.backend.begin(fault, pick),
            Fault::Run(RunFault::Kill) => signal(process, Signal::KILL),
            Fault::Run(RunFault::Stop) => signal(process, Signal::STOP),
        }
        Some(Lasting { injection: injection.clone(), target, at, ends: Instant::now() + lasts, process })
    }

    fn strike(&mut self, node: usize, fault: NodeFault, pick: u64) {
        match fault {
            NodeFault::Kill => self.fleet.kill(node),
            NodeFault::Stop => self.fleet.freeze(node),
            NodeFault::Drain => self.fleet.drain(node),
            NodeFault::Reload => self.fleet.reload(&self.folder, node),
            NodeFault::Clock => {
                // Below and above the difference from which on a node plans by the store's time.
                let offset = ["+1s", "-1s", "+5s", "-5s", "+90s", "-90s"][usize::try_from(pick % 6).unwrap()];
                self.fleet.set_clock(node, Some(offset.to_owned()));
            }
        }
    }

    fn end(&mut self, lasting: &Lasting) {
        let node = lasting.injection.node;
        match lasting.injection.fault {
            Fault::Node(NodeFault::Kill | NodeFault::Drain) => self.fleet.want(node),
            Fault::Node(NodeFault::Stop) => self.fleet.thaw(node),
            Fault::Node(NodeFault::Clock) => self.fleet.set_clock(node, None),
            Fault::Link(_) => self.backend.mend(node),
            Fault::Server(fault) => self.backend.end(fault),
            Fault::Run(RunFault::Stop) => signal(lasting.process, Signal::CONT),
            Fault::Node(NodeFault::Reload) | Fault::Run(RunFault::Kill) => {}
        }
        let word = lasting.injection.fault.word();
        self.book.enter(word, &lasting.target, lasting.at, Utc::now());
    }
}

/// The run may have ended meanwhile.
fn signal(process: Option<Pid>, signal: Signal) {
    if let Some(process) = process {
        let _ = kill_process(process, signal);
    }
}
