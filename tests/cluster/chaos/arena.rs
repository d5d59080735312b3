//! Drives a plan: begins and ends each fault at its time, keeps the nodes going, and enters what was done.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use rustix::process::{Pid, Signal, kill_process};

use super::backend::Backend;
use super::book::Book;
use super::fault::{Fault, NodeFault, OutsiderFault, RunFault, ServerFault};
use super::fleet::Fleet;
use super::folder::Folder;
use super::outsiders::Outsiders;
use super::plan::{Injection, NODE_RESTS};
use super::record;

/// The driver looks so often; a fault is that late at most.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Servers that others may replace are asked so often who leads.
const LOOK_AT_SERVERS_EVERY: TimeDelta = TimeDelta::milliseconds(500);

/// Slots begin at whole seconds: for so long thereafter claims are under way.
const CLAIMS_MS: u32 = 60;

/// Slots of this length are done soon, and due for long enough for a replica to take over before they end.
const LONG_DUE_MS: i64 = 6_000;
/// What strikes while such slots are done begins so long before them.
const BEFORE_THEM_MS: std::ops::Range<i64> = 50..500;

/// Everything that takes part.
pub(super) struct Arena<'a> {
    pub(super) folder: Folder,
    pub(super) fleet: Fleet,
    pub(super) outsiders: Outsiders,
    pub(super) backend: &'a mut dyn Backend,
    pub(super) book: Book,
    /// When the servers were last asked whether they had done something by themselves.
    pub(super) looked: DateTime<Utc>,
}

/// A fault that lasts.
struct Lasting {
    injection: Injection,
    target: String,
    at: DateTime<Utc>,
    ends: Instant,
    /// The process that it struck, of a run or of an outsider.
    process: Option<Pid>,
}

/// How far a fault of the server is.
enum Strike {
    Lasting {
        fault: ServerFault,
        lasting: Lasting,
        trace: Option<String>,
    },
    /// The backend ends it in its own time.
    Ending {
        fault: ServerFault,
        lasting: Lasting,
        trace: Option<String>,
    },
    /// It is over, and the servers tidy up.
    Over {
        fault: ServerFault,
        trace: Option<String>,
    },
}

/// What is due and has to wait: on a busy machine faults last longer than planned.
#[derive(Default)]
struct Queues<'p> {
    of_nodes: VecDeque<&'p Injection>,
    /// The servers have to be ready for one, which takes as long as it takes.
    of_server: VecDeque<&'p Injection>,
    /// When the last fault of a node ended.
    ended: BTreeMap<usize, Instant>,
}

impl<'p> Queues<'p> {
    fn are_empty(&self) -> bool {
        self.of_nodes.is_empty() && self.of_server.is_empty()
    }

    fn take(&mut self, injection: &'p Injection) {
        match injection.fault {
            Fault::Server(_) => self.of_server.push_back(injection),
            _ => self.of_nodes.push_back(injection),
        }
    }

    /// Of those that nothing keeps back: no other fault of the same node, and none that has just ended.
    fn next_of_node(&mut self, lasting: &[Lasting]) -> Option<&'p Injection> {
        let ill =
            |node| lasting.iter().any(|other| other.injection.fault.strikes_a_node() && other.injection.node == node);
        let rests = |node| self.ended.get(&node).is_some_and(|ended| ended.elapsed() < NODE_RESTS);
        let free = |next: &&Injection| !next.fault.strikes_a_node() || !(ill(next.node) || rests(next.node));
        let index = self.of_nodes.iter().position(free)?;
        self.of_nodes.remove(index)
    }

    fn next_of_server(&mut self) -> Option<&'p Injection> {
        self.of_server.pop_front_if(|injection| is_time(injection))
    }
}

impl Arena<'_> {
    /// Injects all of a plan, and ends all of it.
    pub(super) fn suffer(&mut self, plan: &[Injection]) {
        let begun = Instant::now();
        let mut coming = plan.iter().peekable();
        let mut queues = Queues::default();
        let mut lasting: Vec<Lasting> = Vec::new();
        let mut strike = None;
        while coming.peek().is_some() || !lasting.is_empty() || !queues.are_empty() || strike.is_some() {
            while let Some(injection) = coming.next_if(|injection| begun.elapsed() >= injection.at) {
                queues.take(injection);
            }
            let over = |fault: &mut Lasting| fault.ends <= Instant::now();
            for fault in lasting.extract_if(.., over).collect::<Vec<_>>() {
                self.end(&fault);
                if fault.injection.fault.strikes_a_node() {
                    queues.ended.insert(fault.injection.node, Instant::now());
                }
            }
            while let Some(injection) = queues.next_of_node(&lasting) {
                lasting.extend(self.begin(injection));
            }
            strike = match strike {
                None if !self.watch() => None,
                None => queues.next_of_server().and_then(|next| self.strike_server(next)),
                Some(strike) => self.go_on(strike),
            };
            self.rest();
        }
    }

    /// Lets time pass without faults.
    pub(super) fn live(&mut self, span: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < span {
            self.watch();
            self.rest();
        }
    }

    /// Whether the servers are ready for a fault. What they do by themselves is entered like one.
    fn watch(&mut self) -> bool {
        let now = Utc::now();
        if !self.backend.is_ready() || (now - self.looked) < LOOK_AT_SERVERS_EVERY {
            return self.backend.is_ready();
        }
        if self.backend.has_switched() {
            eprintln!("chaos: the servers failed over by themselves between {} and {now}", self.looked);
            self.book.enter(Fault::Server(ServerFault::Failover).word(), "store", self.looked, Utc::now());
            self.book.by_themselves();
        }
        self.looked = now;
        self.backend.is_ready()
    }

    fn rest(&mut self) {
        self.fleet.tend(&self.folder);
        self.outsiders.tend(&self.folder);
        std::thread::sleep(LOOK_EVERY);
    }

    /// None when there was no run, or no outsider, to strike.
    fn begin(&mut self, injection: &Injection) -> Option<Lasting> {
        let Injection { fault, node, pick, lasts, .. } = *injection;
        let (at, mut process) = (Utc::now(), None);
        let mut target = self.fleet.name(node).to_owned();
        if let Fault::Run(_) = fault {
            let run = record::going_on(&self.folder.read("work.jsonl"), pick)?;
            (target, process) = (run.slot, Some(run.process));
        }
        if let Fault::Outsider(fault) = fault {
            let struck = self.outsiders.struck(fault, pick)?;
            (target, process) = (struck.target, Some(struck.process));
        }
        match fault {
            Fault::Node(fault) => self.strike(node, fault, pick),
            Fault::Link(fault) => self.backend.spoil(node, fault, pick),
            Fault::Run(RunFault::Kill) | Fault::Outsider(OutsiderFault::Kill | OutsiderFault::KillKeeper) => {
                signal(process, Signal::KILL);
            }
            Fault::Run(RunFault::Stop) | Fault::Outsider(OutsiderFault::Stop | OutsiderFault::StopKeeper) => {
                signal(process, Signal::STOP);
            }
            Fault::Server(_) => {}
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

    fn strike_server(&mut self, injection: &Injection) -> Option<Strike> {
        let Fault::Server(fault) = injection.fault else { return None };
        let trace = fault.leaves_a_trace().then(|| self.backend.trace(fault));
        let (at, target) = (Utc::now(), "store".to_owned());
        self.backend.begin(fault, injection.pick);
        let ends = Instant::now() + injection.lasts;
        let lasting = Lasting { injection: injection.clone(), target, at, ends, process: None };
        Some(Strike::Lasting { fault, lasting, trace })
    }

    /// None when it is over and the servers are ready for another.
    fn go_on(&mut self, strike: Strike) -> Option<Strike> {
        match strike {
            Strike::Lasting { fault, lasting, trace } if lasting.ends <= Instant::now() => {
                self.backend.end(fault);
                Some(Strike::Ending { fault, lasting, trace })
            }
            Strike::Ending { fault, lasting, trace } if self.backend.is_over() => {
                self.book.enter(lasting.injection.fault.word(), &lasting.target, lasting.at, Utc::now());
                if lasting.injection.amid_work {
                    self.look_anew();
                }
                Some(Strike::Over { fault, trace })
            }
            Strike::Over { fault, trace } if self.backend.is_ready() => {
                self.looked = Utc::now();
                let took_effect = trace.is_none_or(|before| before != self.backend.trace(fault));
                self.book.of_server(fault, took_effect);
                None
            }
            unchanged => Some(unchanged),
        }
    }

    /// A node that has learnt that a slot is done asks no more; one that reads its file again does.
    fn look_anew(&mut self) {
        let (word, at) = (Fault::Node(NodeFault::Reload).word(), Utc::now());
        for node in self.fleet.look_anew(&self.folder) {
            self.book.enter(word, &node, at, Utc::now());
        }
    }

    fn end(&mut self, lasting: &Lasting) {
        let node = lasting.injection.node;
        match lasting.injection.fault {
            Fault::Node(NodeFault::Kill | NodeFault::Drain) => self.fleet.want(node),
            Fault::Node(NodeFault::Stop) => self.fleet.thaw(node),
            Fault::Node(NodeFault::Clock) => self.fleet.set_clock(node, None),
            Fault::Link(_) => self.backend.mend(node),
            Fault::Run(RunFault::Stop) | Fault::Outsider(OutsiderFault::Stop | OutsiderFault::StopKeeper) => {
                signal(lasting.process, Signal::CONT);
            }
            Fault::Node(NodeFault::Reload) | Fault::Run(RunFault::Kill) | Fault::Server(_) => {}
            Fault::Outsider(OutsiderFault::Kill | OutsiderFault::KillKeeper) => {}
        }
        let word = lasting.injection.fault.word();
        self.book.enter(word, &lasting.target, lasting.at, Utc::now());
    }
}

/// Every second crash comes while claims are under way, and what is to strike amid work just before that.
fn is_time(injection: &Injection) -> bool {
    if injection.amid_work {
        return BEFORE_THEM_MS.contains(&(LONG_DUE_MS - Utc::now().timestamp_millis().rem_euclid(LONG_DUE_MS)));
    }
    let amid_claims = injection.fault == Fault::Server(ServerFault::Crash) && injection.pick.is_multiple_of(2);
    !amid_claims || Utc::now().timestamp_subsec_millis() < CLAIMS_MS
}

/// The run may have ended meanwhile.
fn signal(process: Option<Pid>, signal: Signal) {
    if let Some(process) = process {
        let _ = kill_process(process, signal);
    }
}
