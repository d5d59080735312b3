//! What can be done to a cluster, and what each is called in the faults file of `cronward verify`.
//!
//! The names decide what the checker lets a fault excuse (docs/journal.md): nothing for those after which the protocol
//! promises every slot once all the same.

use std::ops::Range;
use std::time::Duration;

use crate::proxy::Mode;

use super::backend::Bears;

/// One thing that can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    Node(NodeFault),
    Run(RunFault),
    Outsider(OutsiderFault),
    Link(LinkFault),
    Server(ServerFault),
}

/// Done to a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NodeFault {
    /// kill -9, and a new start later.
    Kill,
    /// SIGSTOP, and SIGCONT later.
    Stop,
    /// SIGTERM, and a new start later.
    Drain,
    /// SIGHUP, with a file that has changed.
    Reload,
    /// A new start with a clock that is some seconds off, and another with the right one.
    Clock,
}

/// Done to the process of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RunFault {
    Kill,
    Stop,
}

/// Done to a `cronward lock` beside the nodes, or to the process that keeps its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OutsiderFault {
    /// kill -9: its command dies with it.
    Kill,
    /// SIGSTOP, and SIGCONT later.
    Stop,
    KillKeeper,
    StopKeeper,
}

/// Done to the link between one node and its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LinkFault {
    Refuse,
    LoseRequests,
    LoseReplies,
    Delay,
    CutReplies,
    /// Connections are accepted and kept, and nothing passes.
    HalfOpen,
}

/// Done to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ServerFault {
    /// SIGSTOP, and SIGCONT later.
    Stop,
    /// kill -9, and a start without its data.
    Restart,
    /// All data is removed.
    Flush,
    /// It keeps less than it has: half of its keys go, whichever, and more with each write.
    Evict,
    /// Its scripts are forgotten.
    ScriptFlush,
    /// All its connections are closed.
    Disconnect,
    /// It takes no more data, and does again later.
    OutOfMemory,
    /// The nodes' user loses rights, and gets them back.
    Deny,
    /// A replica that lacks the last writes takes over.
    Failover,
    /// The master stands still until its replica has taken over; then it goes on, and has to be told.
    Frozen,
    /// The lead is handed over, as an operator does it: nothing is lost.
    Switch,
    /// kill -9, and a start with its data. Of several servers that agree by majority it strikes the leader.
    Crash,
    /// The sessions of all nodes.
    Expire,
}

const NODE: [NodeFault; 4] = [NodeFault::Kill, NodeFault::Stop, NodeFault::Drain, NodeFault::Reload];
const RUN: [RunFault; 2] = [RunFault::Kill, RunFault::Stop];
const LINK: [LinkFault; 6] = [
    LinkFault::Refuse,
    LinkFault::LoseRequests,
    LinkFault::LoseReplies,
    LinkFault::Delay,
    LinkFault::CutReplies,
    LinkFault::HalfOpen,
];

const OUTSIDER: [OutsiderFault; 4] =
    [OutsiderFault::Kill, OutsiderFault::Stop, OutsiderFault::KillKeeper, OutsiderFault::StopKeeper];

impl Fault {
    /// Every kind that a backend can bear.
    pub(super) fn all(bears: &Bears) -> Vec<Self> {
        Self::of_the_cluster(bears).into_iter().chain(Self::of_outsiders(bears)).collect()
    }

    /// What befalls those who hold locks of the same store beside the nodes: it is drawn apart.
    pub(super) fn of_outsiders(bears: &Bears) -> Vec<Self> {
        OUTSIDER.into_iter().map(Self::Outsider).filter(|_| bears.locks).collect()
    }

    /// What befalls nodes, their runs and their store.
    pub(super) fn of_the_cluster(bears: &Bears) -> Vec<Self> {
        let nodes = NODE.into_iter().map(Self::Node).chain(RUN.into_iter().map(Self::Run));
        let links = LINK.into_iter().map(Self::Link).filter(|_| bears.links);
        let clocks = bears.clocks.then_some(Self::Node(NodeFault::Clock));
        nodes.chain(links).chain(clocks).chain(bears.server.iter().copied().map(Self::Server)).collect()
    }

    /// Its kind in the faults file.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Node(NodeFault::Kill) => "kill",
            Self::Node(NodeFault::Stop) | Self::Server(ServerFault::Stop) => "stop",
            Self::Node(NodeFault::Drain) => "drain",
            Self::Node(NodeFault::Reload) => "reload",
            Self::Node(NodeFault::Clock) => "clock",
            // An outsider has no part in any slot.
            Self::Run(RunFault::Kill) | Self::Outsider(OutsiderFault::Kill | OutsiderFault::KillKeeper) => "kill_run",
            Self::Run(RunFault::Stop) | Self::Outsider(OutsiderFault::Stop | OutsiderFault::StopKeeper) => "stop_run",
            Self::Link(LinkFault::Refuse) => "refuse",
            Self::Link(LinkFault::LoseRequests) => "lose_requests",
            Self::Link(LinkFault::LoseReplies) => "lose_replies",
            Self::Link(LinkFault::Delay) => "delay",
            Self::Link(LinkFault::CutReplies) => "cut_replies",
            Self::Link(LinkFault::HalfOpen) => "half_open",
            Self::Server(ServerFault::Restart) => "restart",
            Self::Server(ServerFault::Flush) => "flush",
            Self::Server(ServerFault::Evict) => "evict",
            Self::Server(ServerFault::ScriptFlush) => "script_flush",
            Self::Server(ServerFault::Disconnect) => "disconnect",
            Self::Server(ServerFault::OutOfMemory) => "out_of_memory",
            Self::Server(ServerFault::Deny) => "deny",
            Self::Server(ServerFault::Failover | ServerFault::Frozen) => "failover",
            Self::Server(ServerFault::Switch) => "switch",
            Self::Server(ServerFault::Crash) => "kill_server",
            Self::Server(ServerFault::Expire) => "expire",
        }
    }

    /// How long it lasts, in milliseconds; some shorter than a lease and some longer. An empty range is an instant.
    pub(super) const fn lasts(self) -> Range<u64> {
        match self {
            Self::Node(NodeFault::Kill) => 1_000..6_000,
            Self::Node(NodeFault::Stop) => 300..5_000,
            Self::Node(NodeFault::Drain) => 1_000..4_000,
            // Long enough for grants, by which the checker learns how far a clock is off.
            Self::Node(NodeFault::Clock) => 8_000..12_000,
            Self::Run(RunFault::Stop) => 500..4_000,
            // Shorter than its TTL, and longer.
            Self::Outsider(OutsiderFault::Stop | OutsiderFault::StopKeeper) => 500..5_000,
            Self::Link(_) => 300..4_500,
            Self::Server(ServerFault::Stop | ServerFault::OutOfMemory | ServerFault::Deny) => 300..3_000,
            Self::Server(ServerFault::Restart | ServerFault::Failover | ServerFault::Frozen | ServerFault::Crash) => {
                200..2_500
            }
            Self::Server(ServerFault::Evict) => 300..1_500,
            Self::Server(ServerFault::Switch) => 100..200,
            Self::Server(ServerFault::Expire) => 2_200..3_000,
            Self::Node(NodeFault::Reload)
            | Self::Run(RunFault::Kill)
            | Self::Outsider(OutsiderFault::Kill | OutsiderFault::KillKeeper)
            | Self::Server(ServerFault::Flush | ServerFault::ScriptFlush | ServerFault::Disconnect) => 0..0,
        }
    }

    /// Whether a node is needed to do it to.
    pub(super) const fn strikes_a_node(self) -> bool {
        matches!(self, Self::Node(_) | Self::Link(_))
    }
}

impl ServerFault {
    /// After it another server leads, or the same one has begun anew.
    pub(super) const fn begins_another_life(self) -> bool {
        matches!(self, Self::Restart | Self::Failover | Self::Frozen | Self::Switch | Self::Crash)
    }

    /// Whether the servers themselves can tell that it took effect.
    pub(super) const fn leaves_a_trace(self) -> bool {
        self.begins_another_life() || matches!(self, Self::Evict)
    }
}

impl LinkFault {
    /// What the proxy does; `pick` chooses among variants.
    pub(super) fn mode(self, pick: u64) -> Mode {
        match self {
            Self::Refuse => Mode::Refuse,
            Self::LoseRequests => Mode::LoseRequests,
            Self::LoseReplies => Mode::LoseReplies,
            // Below and above the time limit of an operation, and a third of a lease.
            Self::Delay => Mode::Delay(Duration::from_millis([50, 200, 400, 800][usize::try_from(pick % 4).unwrap()])),
            Self::CutReplies => Mode::CutReply(usize::try_from(pick % 7).unwrap()),
            Self::HalfOpen => Mode::BlackHole,
        }
    }
}
