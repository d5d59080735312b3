//! Urls that name several servers: `redis+sentinel://…`, `redis+cluster://…` and `redlock://…`, and their TLS forms. Each server
//! is then reached as a url of its own would: what is refused there is refused here. Pure, but for a look at the files of TLS.

#[cfg(any(feature = "redis-sentinel", feature = "redis-cluster"))]
use super::target::Target;
#[cfg(any(feature = "redis-sentinel", feature = "redis-cluster"))]
use crate::store::backend::Files;
use crate::store::tls::TlsPaths;
use crate::store::{OpenError, redact};

/// Where one server listens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Address {
    /// Reads `host`, `host:port`, `[v6]:port` or, as Redis itself writes it, `v6:port`.
    pub(super) fn parse(text: &str, default_port: u16) -> Option<Self> {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !host.starts_with('[') || host.ends_with(']') => (host, port.parse().ok()?),
            _ => (text, default_port),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        (!host.is_empty()).then(|| Self { host: host.to_owned(), port })
    }

    /// As it stands in a url.
    pub(super) fn in_url(&self) -> String {
        let Self { host, port } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

/// A url with its list taken apart; every part is still encoded as it was written.
pub(super) struct Members<'a> {
    url: &'a str,
    tls: bool,
    user: Option<&'a str>,
    pub(super) hosts: Vec<Address>,
    pub(super) path: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Members<'a> {
    /// Reads a url. `known` are the parameters that it may have, beside those of TLS.
    pub(super) fn parse(url: &'a str, default_port: u16, known: &[&str]) -> Result<Self, OpenError> {
        let refuse = |message: String| OpenError::Url { url: redact(url), message };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| refuse("it names no server".to_owned()))?;
        if rest.contains('#') {
            return Err(refuse("it has a #fragment: percent-encode what is meant".to_owned()));
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, hosts) = authority.rsplit_once('@').map_or((None, authority), |(user, hosts)| (Some(user), hosts));
        let hosts: Option<Vec<Address>> = hosts.split(',').map(|host| Address::parse(host, default_port)).collect();
        let hosts =
            hosts.ok_or_else(|| refuse("one of its servers is no host: write host:port,host:port".to_owned()))?;
        let parameters = query.split('&').filter(|part| !part.is_empty());
        let parameters: Vec<_> = parameters.map(|part| part.split_once('=').unwrap_or((part, ""))).collect();
        let tls = ["rediss", "valkeys", "redlocks"].iter().any(|of_tls| scheme.starts_with(of_tls));
        let of_tls: &[&str] = if tls { &TlsPaths::PARAMETERS } else { &[] };
        let known = [known, of_tls].concat();
        if let Some((name, _)) = parameters.iter().find(|(name, _)| !known.contains(name)) {
            let list = known.join(", ");
            let list = if list.is_empty() { "none" } else { &list };
            return Err(refuse(format!("parameter {name:?} is not known with {scheme}; known are: {list}")));
        }
        Ok(Self { url, tls, user, hosts, path, parameters })
    }

    pub(super) fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// Each server of the list as a url of its own.
    #[cfg(feature = "redis-redlock")]
    pub(super) fn urls(&self) -> Vec<String> {
        let place = |address: &Address| format!("{}/{}", address.in_url(), self.path);
        self.hosts.iter().map(|address| self.single(self.user, &place(address))).collect()
    }

    /// How the servers that keep the data are reached; at the first address of the list until another is known.
    #[cfg(any(feature = "redis-sentinel", feature = "redis-cluster"))]
    pub(super) fn data(&self, db: &str, name: &str, files: Files) -> Result<Target, OpenError> {
        let first = self.hosts.first().map(Address::in_url).unwrap_or_default();
        self.target(self.user, &format!("{first}/{db}"), name, files)
    }

    /// How one server of the list is reached, as this user (`user:password`).
    #[cfg(feature = "redis-sentinel")]
    pub(super) fn listed(
        &self,
        address: &Address,
        user: Option<&str>,
        name: &str,
        files: Files,
    ) -> Result<Target, OpenError> {
        self.target(user, &address.in_url(), name, files)
    }

    /// A url that names one server.
    fn single(&self, user: Option<&str>, rest: &str) -> String {
        let scheme = if self.tls { "rediss" } else { "redis" };
        let user = user.map_or_else(String::new, |user| format!("{user}@"));
        let of_tls = TlsPaths::PARAMETERS.iter().filter_map(|name| Some((name, self.parameter(name)?)));
        let of_tls: Vec<String> = of_tls.map(|(name, path)| format!("{name}={path}")).collect();
        let query = if of_tls.is_empty() { String::new() } else { format!("?{}", of_tls.join("&")) };
        format!("{scheme}://{user}{rest}{query}")
    }

    #[cfg(any(feature = "redis-sentinel", feature = "redis-cluster"))]
    fn target(&self, user: Option<&str>, rest: &str, name: &str, files: Files) -> Result<Target, OpenError> {
        Target::parse(&self.single(user, rest), name, files).map_err(|error| match error {
            OpenError::Url { message, .. } => self.refuse(&message),
            other => other,
        })
    }

    /// The url cannot be used.
    pub(super) fn refuse(&self, message: &str) -> OpenError {
        OpenError::Url { url: redact(self.url), message: message.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: &str, port: u16) -> Address {
        Address { host: host.to_owned(), port }
    }

    #[test]
    fn an_address_is_read_in_every_form_that_people_and_servers_write() {
        for (text, host, port) in [
            ("h", "h", 6379),
            ("h:1", "h", 1),
            ("[::1]", "::1", 6379),
            ("[::1]:7000", "::1", 7000),
            ("::1:7000", "::1", 7000),
        ] {
            assert_eq!(Address::parse(text, 6_379), Some(address(host, port)), "{text}");
        }
        for text in ["", ":1", "h:port", "h:99999"] {
            assert_eq!(Address::parse(text, 6_379), None, "{text}");
        }
    }

    #[test]
    fn a_list_is_taken_apart_and_a_password_shown_nowhere() {
        let members = Members::parse("redis+cluster://u:hunter2@a,b:1,[::1]:2", 6_379, &[]).unwrap();
        assert_eq!(members.hosts, [address("a", 6_379), address("b", 1), address("::1", 2)]);
        for url in
            ["redis+cluster://u:hunter2@a,,b", "redis+cluster://u:hunter2@a?x=1", "redis+cluster://u:hunter2@a#x"]
        {
            let told = Members::parse(url, 6_379, &[]).err().unwrap().to_string();
            assert!(!told.contains("hunter2") && !told.contains('\n'), "{told}");
        }
    }
}
