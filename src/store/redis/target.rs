//! From a url to what a connection needs. Pure, but for reading the CA file that a url may name.
//!
//! - `redis://[user][:password@]host[:port][/db]`
//! - `rediss://…` the same over TLS, trusting the system's roots, or only the CA file in `?ca=/path/ca.pem`
//! - `redis+unix:///path/to/socket[?db=0&user=…&pass=…]`
//!
//! Anything else in a url is refused rather than ignored: an unknown parameter is a misspelt one.

use std::path::PathBuf;
use std::time::Duration;

use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{Client, Cmd, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo, TlsCertificates};
use url::Url;

use crate::store::backend::Files;
use crate::store::{OpenError, redact};

/// First keepalive probe after, and between two: a peer that is gone is noticed within about 20 s even on a connection
/// that only listens.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_BETWEEN: Duration = Duration::from_secs(3);
/// What was sent and not acknowledged for so long breaks the connection.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);

/// What connections are made from.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// Connects without logging in.
    pub(super) client: Client,
    /// Connects and logs in by itself; for the connection that only listens.
    pub(super) listener: Client,
    /// How to log in.
    pub(super) login: Login,
    #[cfg(any(feature = "redis-sentinel", feature = "redis-cluster"))]
    info: ConnectionInfo,
    #[cfg(any(feature = "redis-sentinel", feature = "redis-cluster"))]
    ca: Option<Vec<u8>>,
}

/// What is said on a new connection before anything else.
#[derive(Clone)]
pub(super) struct Login {
    user: Option<String>,
    password: Option<String>,
    db: i64,
    name: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("user", &self.user).field("db", &self.db).finish_non_exhaustive()
    }
}

impl Login {
    /// AUTH and SELECT where they are needed; last, the connection's name.
    pub(super) fn greeting(&self) -> Vec<Cmd> {
        let mut greeting = Vec::new();
        if let Some(password) = &self.password {
            greeting.push(redis::cmd("AUTH").arg(&self.user).arg(password).take());
        }
        if self.db != 0 {
            greeting.push(redis::cmd("SELECT").arg(self.db).take());
        }
        greeting.push(redis::cmd("CLIENT").arg("SETNAME").arg(&self.name).take());
        greeting
    }
}

/// Refuses the url of one server for its text.
pub(super) fn check(url: &str) -> Result<(), OpenError> {
    Target::parse(url, "", Files::Unread).map(drop)
}

impl Target {
    /// Reads a url. `name` is what the connection calls itself in CLIENT LIST.
    pub(super) fn parse(text: &str, name: &str, files: Files) -> Result<Self, OpenError> {
        let refuse = |message: String| OpenError::Url { url: redact(text), message };
        let mut url = Url::parse(text).map_err(|error| refuse(format!("{error}: write redis://host:6379")))?;
        if url.scheme() != "redis+unix" && url.host_str().is_none_or(str::is_empty) {
            return Err(refuse("it names no host: write redis://host:6379".to_owned()));
        }
        let ca = take_parameters(&mut url, files).map_err(&refuse)?;
        let info = url.into_connection_info().map_err(|error| refuse(told(&error)))?;
        let login = Login {
            user: info.redis_settings().username().map(str::to_owned),
            password: info.redis_settings().password().map(str::to_owned),
            db: info.redis_settings().db(),
            name: name.to_owned(),
        };
        if login.user.is_some() && login.password.is_none() {
            return Err(refuse("it names a user without a password: write redis://user:password@host".to_owned()));
        }
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP2).set_skip_set_lib_name();
        let info = info.set_tcp_settings(tcp_settings());
        Self::build(info.set_redis_settings(settings), ca, login).map_err(refuse)
    }

    fn build(info: ConnectionInfo, ca: Option<Vec<u8>>, login: Login) -> Result<Self, String> {
        let anonymous = RedisConnectionInfo::default().set_skip_set_lib_name();
        let listener = client(info.clone(), ca.as_deref())?;
        let client = client(info.clone().set_redis_settings(anonymous), ca.as_deref())?;
        Ok(Self {
            client,
            listener,
            login,
            #[cfg(any(feature = "redis-sentinel", feature = "redis-cluster"))]
            info,
            #[cfg(any(feature = "redis-sentinel", feature = "redis-cluster"))]
            ca,
        })
    }

    /// The same way in, at another address.
    #[cfg(any(feature = "redis-sentinel", feature = "redis-cluster"))]
    pub(super) fn at(&self, host: &str, port: u16) -> Result<Self, redis::RedisError> {
        use redis::ConnectionAddr::{Tcp, TcpTls, Unix};
        let host = host.to_owned();
        let address = match self.info.addr().clone() {
            TcpTls { insecure, tls_params, .. } => TcpTls { host, port, insecure, tls_params },
            Tcp(..) | Unix(_) => Tcp(host, port),
            other => other,
        };
        let info = self.info.clone().set_addr(address);
        Self::build(info, self.ca.clone(), self.login.clone())
            .map_err(|message| redis::RedisError::from(std::io::Error::other(message)))
    }
}

/// Takes `ca` out of the url and checks what else is in it; answers the CA's certificates, where they are read.
fn take_parameters(url: &mut Url, files: Files) -> Result<Option<Vec<u8>>, String> {
    let known: &[&str] = match url.scheme() {
        "rediss" => &["ca"],
        "redis+unix" => &["db", "user", "pass"],
        _ => &[],
    };
    if url.fragment().is_some() {
        return Err(
            "it has a #fragment: certificates are always checked; name a private CA with ?ca=/path/ca.pem".into()
        );
    }
    let mut ca = None;
    for (key, value) in url.query_pairs() {
        if !known.contains(&key.as_ref()) {
            let list = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(format!("parameter {key:?} is not known with {}; known are: {list}", url.scheme()));
        }
        if key == "ca" {
            ca = Some(PathBuf::from(value.as_ref()));
        }
    }
    let Some(path) = ca else { return Ok(None) };
    url.set_query(None);
    if files == Files::Read { read_ca(&path).map(Some) } else { Ok(None) }
}

fn read_ca(path: &std::path::Path) -> Result<Vec<u8>, String> {
    let pem = std::fs::read(path).map_err(|error| format!("cannot read the CA file {}: {error}", path.display()))?;
    let marker = b"-----BEGIN CERTIFICATE-----";
    if pem.windows(marker.len()).any(|window| window == marker) {
        Ok(pem)
    } else {
        Err(format!("the CA file {} holds no certificate in PEM form", path.display()))
    }
}

fn client(info: ConnectionInfo, ca: Option<&[u8]>) -> Result<Client, String> {
    match ca {
        None => Client::open(info),
        Some(pem) => {
            let certificates = TlsCertificates { client_tls: None, root_cert: Some(pem.to_vec()) };
            Client::build_with_tls(info, certificates)
        }
    }
    .map_err(|error| told(&error))
}

/// The client library's reason as a lowercase fragment. Its messages about urls hold nothing of the url.
fn told(error: &redis::RedisError) -> String {
    let reason = error.to_string().to_lowercase();
    reason.replace(" - invalidclientconfig", "")
}

fn tcp_settings() -> TcpSettings {
    // A request is one small write: waiting to fill a packet would only delay it.
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_IDLE).with_interval(KEEPALIVE_BETWEEN).with_retries(3);
    let settings = TcpSettings::default().set_nodelay(true).set_keepalive(keepalive);
    #[cfg(target_os = "linux")]
    let settings = settings.set_user_timeout(UNACKNOWLEDGED);
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        Target::parse(url, "test", Files::Read).unwrap_err().to_string()
    }

    #[test]
    fn every_documented_form_is_read() {
        for url in [
            "redis://h",
            "redis://h:7000/3",
            "redis://:secret@h",
            "redis://user:secret@h:7000",
            "redis://[::1]:7000",
            "rediss://h",
            "redis+unix:///run/redis.sock",
            "redis+unix:///run/redis.sock?db=2&user=u&pass=secret",
        ] {
            assert!(Target::parse(url, "test", Files::Read).is_ok(), "{url}: {}", refused(url));
        }
    }

    #[test]
    fn user_password_and_database_are_what_the_url_says() {
        let target = Target::parse("redis://us%40er:p%2Fw@h/3", "test", Files::Read).unwrap();
        assert_eq!(target.login.user.as_deref(), Some("us@er"));
        assert_eq!(target.login.password.as_deref(), Some("p/w"));
        assert_eq!(target.login.db, 3);
    }

    #[test]
    fn a_refused_url_is_told_without_its_password() {
        for url in [
            "redis://user:hunter2@",
            "redis://user:hunter2@h/zero",
            "redis://user:hunter2@h?protocol=resp3",
            "redis://user:hunter2@h#insecure",
            "rediss://user:hunter2@h?ca=/nowhere/ca.pem",
            "redis+unix:///s?pass=hunter2&sentinel=1",
            "redis://user:hunter2@h:port",
            "redis://user:hunter2@0.0.0.0",
        ] {
            let told = refused(url);
            assert!(!told.contains("hunter2"), "{told}");
            assert!(!told.contains('\n'), "{told}");
        }
    }

    #[test]
    fn a_refusal_names_the_way_out() {
        assert!(refused("redis://h?tls=1").contains("\"tls\" is not known"));
        assert!(refused("rediss://h?ca=/nowhere/ca.pem").contains("/nowhere/ca.pem"));
        assert!(refused("rediss://h#insecure").contains("?ca="));
        assert!(refused("redis://user@h").contains("user:password"));
    }

    #[test]
    fn the_password_is_in_no_debug_text() {
        let target = Target::parse("redis://user:hunter2@h", "test", Files::Read).unwrap();
        assert!(!format!("{target:?}").contains("hunter2"));
    }
}
