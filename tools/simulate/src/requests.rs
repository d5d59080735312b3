//! What a daemon has asked the store and waits for: sent with the world's means, and remembered by its number.

use std::collections::BTreeMap;
use std::time::Duration;

use cronward::clock::{Mono, Now};
use cronward::drive::Fact;
use cronward::slot::{Slot, Token};
use cronward::store::Op;

use crate::checks::Bug;
use crate::desk::Desk;
use crate::message::{Ask, Request};

/// What a request was about.
#[derive(Debug)]
pub(super) enum Asked {
    Claim(u64, Token, Now),
    Renewal(u64, Token),
    /// With what is to be remembered once it is acknowledged.
    Settlement(u64, Option<Box<Fact>>),
    /// In a round of telling a store again: what is to be looked up.
    Inspect(u64, Vec<Fact>),
    /// Told again; and what is to be told after it.
    Again(u64, Box<Fact>, Vec<Fact>),
    Nodes(Now),
    Heartbeat(Now),
    Register(u64),
    Close(Slot),
    /// An order about the locks of a request, with its token, sent at this instant.
    Lock(Op, u64, Token, Mono),
    /// Whether the slot's job is paused.
    Pause(u64),
}

/// The requests of one daemon.
#[derive(Debug, Default)]
pub(super) struct Requests {
    asked: BTreeMap<u64, Asked>,
    last: u64,
}

impl Requests {
    /// Asks the store.
    pub(super) fn ask(&mut self, desk: &mut Desk<'_>, asked: Asked, ask: Ask, patience: Option<Duration>) {
        self.last += 1;
        let timeout = desk.nature.scenario.network.timeout;
        let patience = patience.map_or(timeout, |patience| patience.min(timeout));
        let late = match &ask {
            Ask::Renew(lease) if desk.nature.is_bug(Bug::RenewsAtTheTtl) => lease.ttl - lease.ttl / 3,
            // The time-out does not come either while the clock stands still.
            Ask::Claim(request) if desk.nature.is_bug(Bug::ClockStops) => request.lease_ttl * 4,
            _ => Duration::ZERO,
        };
        self.asked.insert(self.last, asked);
        let request = Request {
            from: desk.process,
            id: self.last,
            ask,
            shown: desk.now.wall,
            until: desk.nature.now + patience + late,
            unheard: false,
        };
        // Only a renewal is sent late as well.
        let slow = if matches!(request.ask, Ask::Renew(_)) { late } else { Duration::ZERO };
        desk.nature.send(request, slow);
    }

    /// What this one was about, whose answer has come.
    pub(super) fn answered(&mut self, id: u64) -> Option<Asked> {
        self.asked.remove(&id)
    }
}
