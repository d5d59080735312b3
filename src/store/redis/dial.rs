//! How a connection to one server is made: by the client library, or over a stream that is encrypted already.

use std::time::Duration;

use redis::aio::{MultiplexedConnection, PubSub};
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, RedisConnectionInfo, RedisError};

use super::fault::SERVERS;
use super::link::is_answer;
use super::remote::Remote;
use super::target::Target;
use super::tls;
use crate::store::tls::TlsFault;

impl Target {
    /// Connects without logging in.
    pub(super) async fn connect_anonymously(
        &self,
        config: AsyncConnectionConfig,
        limit: Duration,
    ) -> Result<MultiplexedConnection, RedisError> {
        let anonymous = RedisConnectionInfo::default().set_skip_set_lib_name();
        self.connect_as(anonymous, config, limit).await
    }

    /// Connects and logs in.
    #[cfg(feature = "redis-sentinel")]
    pub(super) async fn connect(
        &self,
        config: AsyncConnectionConfig,
        limit: Duration,
    ) -> Result<MultiplexedConnection, RedisError> {
        let connected = self.connect_as(self.info.redis_settings().clone(), config, limit).await;
        match connected {
            Err(error) => Err(self.explain(error, limit).await),
            connected => connected,
        }
    }

    /// Connects and logs in, to hear what is published.
    pub(super) async fn subscriber(&self, limit: Duration) -> Result<PubSub, RedisError> {
        match (&self.tls, self.remote()) {
            (Some(paths), Some(remote)) => {
                let stream = tls::connect(remote, paths, limit).await?;
                PubSub::new(self.info.redis_settings(), stream).await
            }
            _ => Client::open(self.info.clone())?.get_async_pubsub().await,
        }
    }

    /// The error of a connection that broke before the first answer, with the reason where the port turns out to speak TLS, or
    /// to be that of a proxy, which closes the connection at a command that it does not know.
    pub(super) async fn explain(&self, error: RedisError, limit: Duration) -> RedisError {
        if self.tls.is_some() || is_answer(&error) || error.is_timeout() || error.is_connection_refusal() {
            return error;
        }
        let Some(remote) = self.remote() else { return error };
        if tls::is_spoken_at(remote, limit / 4).await {
            let fault = TlsFault::tls_port("rediss:// instead of redis://");
            return RedisError::from(std::io::Error::other(fault));
        }
        if tokio::time::timeout(limit / 4, remote.answers_ping()).await.is_ok() {
            let proxy = format!(
                "it answers PING and closed the connection at the first other command, as a proxy does: {SERVERS}"
            );
            return RedisError::from(std::io::Error::other(proxy));
        }
        error
    }

    async fn connect_as(
        &self,
        settings: RedisConnectionInfo,
        config: AsyncConnectionConfig,
        limit: Duration,
    ) -> Result<MultiplexedConnection, RedisError> {
        let (Some(paths), Some(remote)) = (&self.tls, self.remote()) else {
            let client = Client::open(self.info.clone().set_redis_settings(settings))?;
            return client.get_multiplexed_async_connection_with_config(&config).await;
        };
        let stream = tls::connect(remote, paths, limit).await?;
        let (connection, driver) = MultiplexedConnection::new_with_config(&settings, stream, config).await?;
        // It ends with the last copy of the connection.
        tokio::spawn(driver);
        Ok(connection)
    }

    /// None for a socket of this host.
    fn remote(&self) -> Option<Remote<'_>> {
        match self.info.addr() {
            ConnectionAddr::Tcp(host, port) => Some(Remote { host, port: *port, settings: self.info.tcp_settings() }),
            _ => None,
        }
    }
}
