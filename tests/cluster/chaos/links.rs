//! The links of all nodes to the servers of a store that are listed in a url.

use crate::link::Link;
use crate::proxy::Mode;

use super::fault::LinkFault;

/// For each node one to each server.
pub(super) struct Links(Vec<Vec<Link>>);

impl Links {
    pub(super) fn new(nodes: usize, servers: &[u16]) -> Self {
        let of_node = |_| servers.iter().map(|port| Link::to(*port)).collect();
        Self((0..nodes).map(of_node).collect())
    }

    /// `127.0.0.1:1,127.0.0.1:2`: where a node finds the servers.
    pub(super) fn hosts(&self, node: usize) -> String {
        let hosts: Vec<String> = self.0[node].iter().map(|link| format!("127.0.0.1:{}", link.port())).collect();
        hosts.join(",")
    }

    /// A node is cut off from all servers, or where there are several, every second time from one of them only.
    pub(super) fn spoil(&self, node: usize, fault: LinkFault, pick: u64) {
        let links = &self.0[node];
        let (one, which) = ((pick >> 8) & 1 == 1, usize::try_from(pick >> 9).unwrap() % links.len());
        let mode = fault.mode(pick);
        links.iter().enumerate().filter(|(index, _)| !one || *index == which).for_each(|(_, link)| link.set(mode));
    }

    pub(super) fn mend(&self, node: usize) {
        self.0[node].iter().for_each(|link| link.set(Mode::Pass));
    }
}
