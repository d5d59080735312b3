//! What `[http]` means: where the daemon listens, who may ask, and what it refuses to start with.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use crate::config::Network;
use crate::job::JobSelection;

/// `[http]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Whether actions are refused.
    pub read_only: bool,
    /// The path that everything is served under: begins with `/`, and ends with it only when it is all of it.
    pub base_path: String,
    /// Where people reach it, through whatever stands in front.
    pub public_url: Option<String>,
    /// Whether what stands in front speaks TLS with the world.
    pub behind_tls_proxy: bool,
    /// `[http.tls]`: what the port itself speaks TLS with.
    pub tls: Option<TlsFiles>,
    /// Whether the figures are for everybody who reaches the port.
    pub metrics_open: bool,
    /// Of which jobs there are metrics.
    pub metrics_jobs: JobSelection,
    /// `[http.auth] tokens_file`.
    pub tokens_file: Option<PathBuf>,
    /// `[http.auth.proxy]`.
    pub proxy: Option<ProxyConfig>,
}

/// `[http.tls]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and those between it and its root, as PEM.
    pub cert_file: PathBuf,
    /// Its private key, as PEM.
    pub key_file: PathBuf,
}

/// `[http.auth.proxy]`: who is believed when it says who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyConfig {
    /// The header with the name of who asks.
    pub user_header: String,
    /// How the role is told.
    pub roles: RoleSource,
    /// The addresses of the proxy itself.
    pub from: Vec<Network>,
}

/// Where a proxy tells the role of who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleSource {
    /// Nowhere: everybody is a viewer.
    Nowhere,
    /// In a header that has the role's name.
    Named(String),
    /// In a header with groups, and the role of each group that has one.
    Groups(String, BTreeMap<String, Role>),
}

/// What somebody may do. Who may more may also what the lesser may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Look.
    Viewer,
    /// Look, and act.
    Operator,
}

impl Role {
    /// Every role by its name.
    pub const ALL: [(&str, Self); 2] = [("viewer", Self::Viewer), ("operator", Self::Operator)];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
        }
    }

    /// The role of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find_map(|(known, role)| (known == name).then_some(role))
    }
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 9747)),
            read_only: true,
            base_path: "/".to_owned(),
            public_url: None,
            behind_tls_proxy: false,
            tls: None,
            metrics_open: false,
            metrics_jobs: JobSelection::All,
            tokens_file: None,
            proxy: None,
        }
    }
}

/// Why nothing may listen as a file or a command line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// A stable word.
    pub code: &'static str,
    /// What is wrong; continues a sentence that begins with the key.
    pub what: String,
    /// What to do.
    pub hint: String,
}

impl HttpConfig {
    /// Whether it is said who may ask.
    pub const fn has_auth(&self) -> bool {
        self.tokens_file.is_some() || self.proxy.is_some()
    }

    /// Whether the role of an operator can be had at all: by a token of the file, or by what a proxy says.
    pub fn may_have_operators(&self) -> bool {
        let by_proxy = self.proxy.as_ref().is_some_and(|proxy| match &proxy.roles {
            RoleSource::Nowhere => false,
            RoleSource::Named(_) => true,
            RoleSource::Groups(_, roles) => roles.values().any(|role| *role == Role::Operator),
        });
        self.tokens_file.is_some() || by_proxy
    }

    /// Whether the world reaches the port through TLS alone, its own or a proxy's.
    pub const fn is_behind_tls(&self) -> bool {
        self.behind_tls_proxy || self.tls.is_some()
    }

    /// Why the daemon refuses to listen like this, if it does. Closed by default: where others can reach it, it has to be said who may
    /// ask, and no token may cross the network in a form that others can read.
    pub fn objection(&self) -> Option<Objection> {
        let (address, port) = (self.listen, self.listen.port());
        if address.ip().to_canonical().is_loopback() {
            return None;
        }
        if !self.has_auth() {
            return Some(Objection {
                code: "not-loopback",
                what: format!("is {address}, where others can reach it: cronward refuses to start without auth"),
                hint: format!("listen on 127.0.0.1:{port}, or name who may ask in [http.auth] tokens_file"),
            });
        }
        (self.tokens_file.is_some() && !self.is_behind_tls()).then(|| Objection {
            code: "plain-token",
            what: format!("is {address}, and tokens would cross the network in plain HTTP"),
            hint: format!(
                "name a certificate in [http.tls], or set behind_tls_proxy = true for a proxy in front, or listen on 127.0.0.1:{port}"
            ),
        })
    }
}

/// An address and a port as they are written; `localhost` is the IPv4 one.
pub fn parse_listen(text: &str) -> Option<SocketAddr> {
    let numeric = text.strip_prefix("localhost:").map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
    numeric.parse().ok()
}

/// What to write in the place of an address that cannot be read; the port of one that has nothing else.
pub(crate) fn listen_hint(text: &str) -> String {
    match text.trim().trim_start_matches(['*', ':']).parse::<u16>() {
        Ok(port) => format!("write \"127.0.0.1:{port}\", or another address of this host with the port"),
        Err(_) => "write an address and a port: \"127.0.0.1:9747\" or \"[::1]:9747\"".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(listen: &str, change: impl FnOnce(&mut HttpConfig)) -> Option<&'static str> {
        let mut http = HttpConfig { listen: parse_listen(listen).unwrap(), ..HttpConfig::default() };
        change(&mut http);
        http.objection().map(|objection| objection.code)
    }

    #[test]
    fn an_address_that_others_reach_needs_auth_and_a_token_there_needs_tls() {
        let tokens = |http: &mut HttpConfig| http.tokens_file = Some(PathBuf::from("tokens"));
        let proxy = |http: &mut HttpConfig| {
            let from = vec!["10.0.0.5/32".parse().unwrap()];
            http.proxy = Some(ProxyConfig { user_header: "x-user".to_owned(), roles: RoleSource::Nowhere, from });
        };
        for own in ["127.0.0.1:1", "[::1]:1", "localhost:1", "127.8.8.8:1", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(refused(own, |_| ()), None, "{own}");
            assert_eq!(refused(own, tokens), None, "{own}");
        }
        for others in ["0.0.0.0:1", "[::]:1", "192.0.2.1:1"] {
            assert_eq!(refused(others, |_| ()), Some("not-loopback"), "{others}");
            assert_eq!(refused(others, tokens), Some("plain-token"), "{others}");
            assert_eq!(refused(others, |http| (tokens(http), http.behind_tls_proxy = true).1), None, "{others}");
            assert_eq!(refused(others, |http| http.behind_tls_proxy = true), Some("not-loopback"), "{others}");
            assert_eq!(refused(others, proxy), None, "{others}");
        }
    }
}
