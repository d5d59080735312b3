//! From a url to what a connection needs. Pure, but for reading the files that a url may name.
//!
//! - `etcd://[user:password@]host[:port][,host[:port]…]`, port 2379 unless given
//! - `etcds://…` the same over TLS, trusting the system's roots, or only the CA file in `?ca=/path/ca.pem`; with a
//!   certificate of its own by `?cert=/path/cert.pem&key=/path/key.pem`
//!
//! Anything else in a url is refused rather than ignored: an unknown parameter is a misspelt one.

use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::ServerCertVerifier;
use tonic::transport::{ClientTlsConfig, Endpoint, Identity};
use url::form_urlencoded;

use crate::store::backend::Files;
use crate::store::tls::{TlsContents, TlsPaths, trusting};
use crate::store::url::host_and_port;
use crate::store::{OpenError, redact};

const PORT: u16 = 2_379;

/// How a url is written.
pub(super) const FORM: &str = "write etcd://HOST:2379, or several hosts with commas between them";

/// A connection that is idle is asked so often whether it still stands. Servers refuse to be asked more often than every
/// 5 s (`--grpc-keepalive-min-time`).
const PING_EVERY: Duration = Duration::from_secs(10);
const PING_LIMIT: Duration = Duration::from_secs(5);

/// What connections are made from.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The cluster's members, at least one.
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) login: Option<Login>,
}

/// Who asks.
#[derive(Clone)]
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Target {
    /// Reads a url. A connection may take `connect_limit` to be made.
    pub(super) fn parse(url: &str, op_timeout: Duration, files: Files) -> Result<Self, OpenError> {
        let refuse = |message: String| OpenError::Url { url: redact(url), message };
        let parts = Parts::of(url).map_err(&refuse)?;
        let hosts: Vec<String> =
            parts.hosts.split(',').map(|host| host_and_port(host, PORT)).collect::<Result<_, _>>().map_err(&refuse)?;
        // With several members there is time to find that one of them is gone, and to ask another.
        let connect_limit = if hosts.len() > 1 { op_timeout / 4 } else { op_timeout / 2 };
        let tls = parts.tls(files).map_err(&refuse)?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let endpoint = |host: String| endpoint(&format!("{scheme}://{host}"), tls.clone(), connect_limit);
        let endpoints = hosts.into_iter().map(endpoint).collect::<Result<_, _>>().map_err(&refuse)?;
        Ok(Self { endpoints, login: parts.login().map_err(&refuse)? })
    }
}

/// What is shown to a server, and which ones are trusted; the library knows those that the system trusts.
type Tls = (ClientTlsConfig, Option<Arc<dyn ServerCertVerifier>>);

/// A url, taken apart. Several hosts with ports are no url by the general rules.
struct Parts<'a> {
    over_tls: bool,
    user_info: Option<&'a str>,
    hosts: &'a str,
    query: &'a str,
}

impl<'a> Parts<'a> {
    fn of(url: &'a str) -> Result<Self, String> {
        let form = || format!("it names no host: {FORM}");
        let (scheme, rest) = url.split_once("://").ok_or_else(form)?;
        if rest.contains('#') {
            return Err("it has a #fragment, which means nothing here".to_owned());
        }
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (place, path) = place.split_once('/').unwrap_or((place, ""));
        if !path.is_empty() {
            return Err(format!("it has a path, /{path}, which means nothing here: a namespace is set beside the url"));
        }
        let (user_info, hosts) = match place.rsplit_once('@') {
            Some((user_info, hosts)) => (Some(user_info), hosts),
            None => (None, place),
        };
        if hosts.is_empty() {
            return Err(form());
        }
        Ok(Self { over_tls: scheme == "etcds", user_info, hosts, query })
    }

    fn login(&self) -> Result<Option<Login>, String> {
        let Some(user_info) = self.user_info else { return Ok(None) };
        let Some((user, password)) = user_info.split_once(':').filter(|(user, _)| !user.is_empty()) else {
            return Err("it names no user with a password: write etcd://user:password@host".to_owned());
        };
        Ok(Some(Login { user: decoded(user)?, password: decoded(password)? }))
    }

    fn tls(&self, files: Files) -> Result<Option<Tls>, String> {
        let mut paths = TlsPaths::default();
        for (name, path) in form_urlencoded::parse(self.query.as_bytes()) {
            if !self.over_tls || !paths.take(&name, &path) {
                return Err(unknown_parameter(&name, self.over_tls));
            }
        }
        if !self.over_tls {
            return Ok(None);
        }
        paths.check()?;
        let contents = if files == Files::Read { paths.read()? } else { TlsContents::default() };
        let trusted = contents.ca.map(trusting).transpose()?;
        let config = match contents.identity {
            Some((cert, key)) => ClientTlsConfig::new().identity(Identity::from_pem(cert, key)),
            None => ClientTlsConfig::new(),
        };
        // No connection is made of a url whose files are not read.
        let by_system = trusted.is_none() && files == Files::Read;
        Ok(Some((if by_system { config.with_native_roots() } else { config }, trusted)))
    }
}

fn unknown_parameter(name: &str, over_tls: bool) -> String {
    let known = if over_tls { "ca, cert, key" } else { "none; those of TLS belong to etcds://" };
    format!("parameter {name:?} is not known; known are: {known}")
}

fn decoded(text: &str) -> Result<String, String> {
    // A plus sign is itself in this part of a url.
    let escaped = format!("v={}", text.replace('+', "%2B").replace('&', "%26"));
    let pair = form_urlencoded::parse(escaped.as_bytes()).next();
    pair.map(|(_, value)| value.into_owned()).ok_or_else(|| "its user or password cannot be decoded".to_owned())
}

fn endpoint(uri: &str, tls: Option<Tls>, connect_limit: Duration) -> Result<Endpoint, String> {
    let told = |error: tonic::transport::Error| {
        let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        format!("{error}: {source}").to_lowercase()
    };
    let endpoint = Endpoint::from_shared(uri.to_owned()).map_err(told)?;
    let endpoint = endpoint
        .connect_timeout(connect_limit)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_LIMIT)
        .keep_alive_while_idle(true);
    match tls {
        Some((config, Some(trusted))) => endpoint.tls_config_with_verifier(config, trusted).map_err(told),
        Some((config, None)) => endpoint.tls_config(config).map_err(told),
        None => Ok(endpoint),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Target, OpenError> {
        Target::parse(url, Duration::from_millis(500), Files::Read)
    }

    fn hosts(url: &str) -> Vec<String> {
        parse(url).unwrap().endpoints.iter().map(|endpoint| endpoint.uri().to_string()).collect()
    }

    #[test]
    fn every_documented_form_is_read() {
        assert_eq!(hosts("etcd://h"), ["http://h:2379/"]);
        assert_eq!(
            hosts("etcd://a,b:1,[::1],[::1]:7"),
            ["http://a:2379/", "http://b:1/", "http://[::1]:2379/", "http://[::1]:7/"]
        );
        assert_eq!(hosts("etcds://u:p@a:2379,b"), ["https://a:2379/", "https://b:2379/"]);
        assert!(parse("etcd://h").unwrap().login.is_none());
    }

    #[test]
    fn user_and_password_are_what_the_url_says() {
        let login = parse("etcd://us%40er:p+%2F%26w&@a,b").unwrap().login.unwrap();
        assert_eq!((login.user.as_str(), login.password.as_str()), ("us@er", "p+/&w&"));
        assert!(!format!("{login:?}").contains("p+"));
    }

    #[test]
    fn a_refused_url_is_told_without_its_password_and_with_a_way_out() {
        for (url, way_out) in [
            ("etcd://u:hunter2@", "HOST:2379"),
            ("etcd://u:hunter2@h/prefix", "namespace"),
            ("etcd://u:hunter2@h?ca=/x", "etcds://"),
            ("etcds://u:hunter2@h?tls=1", "ca, cert, key"),
            ("etcds://u:hunter2@h?ca=/nowhere/ca.pem", "/nowhere/ca.pem"),
            ("etcd://u:hunter2@h:port", "HOST:PORT"),
            ("etcd://u:hunter2@a,,b", "HOST:PORT"),
            ("etcd://hunter2@h", "user:password"),
            ("etcd://:hunter2@h", "user:password"),
            ("etcd://u:hunter2@h#x", "#fragment"),
        ] {
            let told = parse(url).unwrap_err().to_string();
            assert!(told.contains(way_out) && !told.contains("hunter2") && !told.contains('\n'), "{told}");
        }
    }

    #[test]
    fn a_certificate_without_its_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cert.pem");
        std::fs::write(&file, "-----BEGIN CERTIFICATE-----").unwrap();
        let told = parse(&format!("etcds://h?cert={}", file.display())).unwrap_err().to_string();
        assert!(told.contains("needs its key"), "{told}");
    }
}
