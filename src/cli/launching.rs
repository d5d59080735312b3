//! By what commands are started, and what they must not inherit.

use std::path::PathBuf;

use crate::cli::store_args::StoreAddress;
use crate::exec::{Launcher, Output};
use crate::store;

/// The keeper of each command is this very program, also after an upgrade has put another in its place on the disk.
pub(super) fn launcher(address: &StoreAddress) -> Launcher {
    hiding(&address.url)
}

/// The same for the store of this url.
pub(super) fn hiding(url: &str) -> Launcher {
    let launcher = Launcher::new(PathBuf::from("/proc/self/exe"), Output::Capture);
    launcher.hide(&store::secrets(url));
    launcher
}
