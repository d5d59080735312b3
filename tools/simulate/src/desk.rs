//! What a node's daemon sees of the world, and does to it, while it handles one event.

use cronward::clock::Now;
use cronward::event::Event;

use crate::engine::NodeClock;
use crate::message::Process;
use crate::nature::Nature;

/// The world from where a daemon sits.
pub(super) struct Desk<'a> {
    pub(super) nature: &'a mut Nature,
    pub(super) process: Process,
    /// As the daemon reads it.
    pub(super) clock: NodeClock,
    /// As the machine has it, not put right by the store's.
    pub(super) machine_clock: NodeClock,
    pub(super) now: Now,
    /// What the clocks show that were not put right by the store's.
    pub(super) uncorrected: Now,
    /// The process is to die before it does anything more.
    pub(super) dying: bool,
    /// The process has left, whatever it still waited for.
    pub(super) leaving: bool,
}

impl Desk<'_> {
    /// Something happened to the node.
    pub(super) fn tell(&mut self, event: &Event) {
        self.nature.write(self.process, self.uncorrected.wall, None, event);
    }
}
