//! A service manager's ear: the datagram socket of `NOTIFY_SOCKET` (sd_notify(3)).

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A socket that hears what a daemon tells its service manager.
pub(crate) struct Manager {
    socket: UnixDatagram,
    path: PathBuf,
    heard: Vec<String>,
}

impl Manager {
    pub(crate) fn listen(folder: &Path) -> Self {
        let path = folder.join("notify.sock");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        Self { socket, path, heard: Vec::new() }
    }

    /// The value of `NOTIFY_SOCKET`.
    pub(crate) fn address(&self) -> String {
        self.path.display().to_string()
    }

    /// Every line heard so far.
    pub(crate) fn heard(&mut self) -> &[String] {
        let mut buffer = [0; 4096];
        while let Ok(length) = self.socket.recv(&mut buffer) {
            self.heard.extend(String::from_utf8_lossy(&buffer[..length]).lines().map(str::to_owned));
        }
        &self.heard
    }

    /// How often a line was heard.
    pub(crate) fn count(&mut self, line: &str) -> usize {
        self.heard().iter().filter(|heard| *heard == line).count()
    }
}
