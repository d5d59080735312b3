//! Who asks and from where, as extensions of a request: the gate puts them there, handlers read them.

use std::net::IpAddr;

use crate::web::tokens::Bearer;

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) IpAddr);

/// Who asks, and from where.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) bearer: Bearer,
    pub(super) peer: Peer,
}
