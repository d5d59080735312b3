//! From a url to what a connection needs. Pure, but for a look at the files that a url may name.
//!
//! - `redis://[user][:password@]host[:port][/db]`
//! - `rediss://…` the same over TLS, trusting the system's roots, or only the CA file in `?ca=/path/ca.pem`; with a
//!   certificate of its own by `?cert=/path/cert.pem&key=/path/key.pem`
//! - `redis+unix:///path/to/socket[?db=0&user=…&pass=…]`
//! - `valkey://…`, `valkeys://…` and so on: the same
//!
//! Anything else in a url is refused rather than ignored: an unknown parameter is a misspelt one.

use std::borrow::Cow;
use std::time::Duration;

use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{Cmd, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};
use url::Url;

use crate::store::backend::Files;
use crate::store::tls::TlsPaths;
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
    /// The address, and how to log in there.
    pub(super) info: ConnectionInfo,
    /// None for a connection without TLS.
    pub(super) tls: Option<TlsPaths>,
    /// How to log in.
    pub(super) login: Login,
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

/// The url as one of Redis: a scheme of Valkey means what that of Redis does.
pub(super) fn as_redis(url: &str) -> Cow<'_, str> {
    match url.strip_prefix("valkey").filter(|rest| rest.starts_with([':', '+', 's'])) {
        Some(rest) => Cow::Owned(format!("redis{rest}")),
        None => Cow::Borrowed(url),
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
        let mut url =
            Url::parse(&as_redis(text)).map_err(|error| refuse(format!("{error}: write redis://host:6379")))?;
        if url.scheme() != "redis+unix" && url.host_str().is_none_or(str::is_empty) {
            return Err(refuse("it names no host: write redis://host:6379".to_owned()));
        }
        let over_tls = url.scheme() == "rediss";
        let tls = take_parameters(&url).map_err(&refuse)?;
        if over_tls {
            // The client library gets a stream that is encrypted already.
            let _ = url.set_scheme("redis");
            url.set_query(None);
        }
        let tls = over_tls.then_some(tls);
        if let Some(paths) = tls.as_ref().filter(|_| files == Files::Read) {
            super::tls::check(paths).map_err(&refuse)?;
        }
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
        let info = info.set_tcp_settings(tcp_settings()).set_redis_settings(settings);
        Ok(Self { info, tls, login })
    }

    /// The same way in, at another address.
    #[cfg(any(feature = "redis-sentinel", feature = "redis-cluster"))]
    pub(super) fn at(&self, host: &str, port: u16) -> Self {
        let info = self.info.clone().set_addr(redis::ConnectionAddr::Tcp(host.to_owned(), port));
        Self { info, ..self.clone() }
    }
}

/// Checks what else is in the url, and takes from it what TLS needs.
fn take_parameters(url: &Url) -> Result<TlsPaths, String> {
    let known: &[&str] = match url.scheme() {
        "rediss" => &TlsPaths::PARAMETERS,
        "redis+unix" => &["db", "user", "pass"],
        _ => &[],
    };
    if url.fragment().is_some() {
        return Err(
            "it has a #fragment: certificates are always checked; name a private CA with ?ca=/path/ca.pem".into()
        );
    }
    let mut paths = TlsPaths::default();
    for (key, value) in url.query_pairs() {
        if !known.contains(&key.as_ref()) {
            let list = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(format!("parameter {key:?} is not known with {}; known are: {list}", url.scheme()));
        }
        paths.take(&key, &value);
    }
    paths.check()?;
    Ok(paths)
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
            "valkey://user:secret@h:7000/3",
            "valkeys://h",
            "valkey+unix:///run/valkey.sock?db=2",
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
    fn a_scheme_of_valkey_means_what_that_of_redis_does() {
        for (valkey, redis) in [
            ("valkey://h", "redis://h"),
            ("valkeys://h", "rediss://h"),
            ("valkeys+cluster://a,b", "rediss+cluster://a,b"),
            ("valkey+sentinel://a/m", "redis+sentinel://a/m"),
            ("redis://valkey", "redis://valkey"),
        ] {
            assert_eq!(as_redis(valkey), redis);
        }
        let target = |url| Target::parse(url, "test", Files::Unread).unwrap();
        assert!(target("valkeys://h").tls.is_some() && target("valkey://h").tls.is_none());
    }

    #[test]
    fn a_refused_url_is_told_without_its_password() {
        for url in [
            "redis://user:hunter2@",
            "redis://user:hunter2@h/zero",
            "redis://user:hunter2@h?protocol=resp3",
            "redis://user:hunter2@h#insecure",
            "rediss://user:hunter2@h?ca=/nowhere/ca.pem",
            "rediss://user:hunter2@h?cert=/nowhere/cert.pem",
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
        assert!(refused("rediss://h?cert=/etc/c.pem").contains("?cert=/path/cert.pem&key=/path/key.pem"));
        assert!(refused("rediss://h?crt=/etc/c.pem").contains("known are: ca, cert, key"));
        assert!(refused("rediss://h#insecure").contains("?ca="));
        assert!(refused("redis://user@h").contains("user:password"));
    }

    #[test]
    fn the_password_is_in_no_debug_text() {
        let target = Target::parse("redis://user:hunter2@h", "test", Files::Read).unwrap();
        assert!(!format!("{target:?}").contains("hunter2"));
    }
}
