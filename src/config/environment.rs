//! What checking a file may know of the world around it: variables, the host's name, the date, files that hold secrets.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::{DateTime, Utc};

use crate::config::file;

/// What checking a file may know of the world around it.
#[derive(Clone, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    hostname: Option<String>,
    now: DateTime<Utc>,
}

impl Environment {
    /// An empty one. `now` is where lints about ticks and daylight saving time begin to look.
    pub const fn new(now: DateTime<Utc>) -> Self {
        Self { variables: BTreeMap::new(), hostname: None, now }
    }

    /// This process's variables and this machine's host name. Variables that are not UTF-8 are left out.
    pub fn of_process(now: DateTime<Utc>) -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let hostname = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
        Self { variables, hostname: hostname.filter(|name| !name.is_empty()), now }
    }

    /// The same with one variable set.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The same with another host name.
    #[must_use]
    pub fn with_hostname(mut self, name: &str) -> Self {
        self.hostname = Some(name.to_owned());
        self
    }

    /// A variable. Shells set `HOSTNAME` without passing it on, so that one is the machine's own name when it is absent.
    pub fn variable(&self, name: &str) -> Option<&str> {
        let set = self.variables.get(name).map(String::as_str);
        if name == "HOSTNAME" { set.or(self.hostname.as_deref()) } else { set }
    }

    /// When the check is made.
    pub const fn now(&self) -> DateTime<Utc> {
        self.now
    }

    /// The first line of a small file that holds a secret.
    pub(super) fn read_secret(&self, path: &Path) -> Result<String, String> {
        const LIMIT: u64 = 64 * 1024;
        let text = file::read_text(path, LIMIT)?;
        Ok(text.lines().next().unwrap_or("").trim().to_owned())
    }
}

/// Without values: they may be secrets.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment")
            .field("variables", &self.variables.keys())
            .field("hostname", &self.hostname)
            .field("now", &self.now)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_name_stands_in_for_a_variable_that_shells_do_not_pass_on() {
        let env = Environment::new(DateTime::UNIX_EPOCH).with_hostname("web-1");
        assert_eq!(env.variable("HOSTNAME"), Some("web-1"));
        assert_eq!(env.variable("OTHER"), None);
        assert_eq!(env.with("HOSTNAME", "set").variable("HOSTNAME"), Some("set"));
    }

    #[test]
    fn values_are_not_shown() {
        let env = Environment::new(DateTime::UNIX_EPOCH).with("TOKEN", "hunter2");
        assert!(!format!("{env:?}").contains("hunter2"));
    }
}
