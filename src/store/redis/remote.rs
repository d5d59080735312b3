//! A server's address, and what can be learnt there without logging in.

use std::io;

use futures_util::future::select_ok;
use redis::io::tcp::{TcpSettings, socket2::SockRef};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Where a server listens, and how sockets are set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remote<'a> {
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) settings: &'a TcpSettings,
}

impl Remote<'_> {
    /// A connection to the first address of the host that takes one.
    pub(super) async fn connect(self) -> io::Result<TcpStream> {
        let addresses = tokio::net::lookup_host((self.host, self.port)).await?;
        let attempts: Vec<_> = addresses.map(|address| Box::pin(TcpStream::connect(address))).collect();
        if attempts.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the host has no address"));
        }
        let (stream, _) = select_ok(attempts).await?;
        let socket = SockRef::from(&stream);
        socket.set_tcp_nodelay(self.settings.nodelay())?;
        self.settings.keepalive().map_or(Ok(()), |keepalive| socket.set_tcp_keepalive(keepalive))?;
        #[cfg(target_os = "linux")]
        socket.set_tcp_user_timeout(self.settings.user_timeout())?;
        Ok(stream)
    }

    /// Ends when the port answers a PING that is not encrypted; never where it does not. No password is sent.
    pub(super) async fn answers_ping(self) {
        let asked = async {
            let mut stream = self.connect().await?;
            stream.write_all(b"*1\r\n$4\r\nPING\r\n").await?;
            stream.read_u8().await
        };
        // `+PONG`, or `-NOAUTH`, `-ERR`.
        if !matches!(asked.await, Ok(b'+' | b'-')) {
            std::future::pending::<()>().await;
        }
    }
}
