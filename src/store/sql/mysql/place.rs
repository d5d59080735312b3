//! From a url to what sqlx connects with. Only parameters that are known are passed on, so that none is ignored in silence.

use std::fmt;

use sqlx::ConnectOptions as _;
use sqlx::mysql::MySqlConnectOptions;

use crate::store::sql::server::{Access, take_access};
use crate::store::{OpenError, redact};

/// The url's parameters, as sqlx and the client of MySQL name them.
const PARAMETERS: [&str; 5] = ["ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "socket"];

const FORM: &str = "write mysql://user:password@host:3306/database, special characters percent-encoded";

/// Where the server is.
#[derive(Clone)]
pub(super) struct Place {
    /// Holds the password: never printed.
    pub(super) options: MySqlConnectOptions,
    pub(super) access: Access,
    /// For messages.
    pub(super) location: String,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("location", &self.location).field("access", &self.access).finish_non_exhaustive()
    }
}

/// What a url names.
pub(super) fn resolve(url: &str) -> Result<Place, OpenError> {
    let refuse = |message: String| OpenError::Url { url: redact(url), message };
    let mut parsed = url::Url::parse(url).map_err(|error| refuse(format!("{error}: {FORM}")))?;
    let access = take_access(&mut parsed, &PARAMETERS).map_err(&refuse)?;
    let options =
        MySqlConnectOptions::from_url(&parsed).map_err(|_| refuse(format!("a parameter is wrong: {FORM}")))?;
    if options.get_database().is_none() {
        return Err(refuse(format!("it names no database: {FORM}")));
    }
    // What the driver would set on each connection is set here, once, with the rest.
    let options = options.pipes_as_concat(false).no_engine_substitution(false);
    Ok(Place { options: options.disable_statement_logging(), access, location: redact(url) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_host_user_database_and_whether_tables_may_be_made() {
        let place = resolve("mysql://u:p%40ss@db.example:3307/cron?migrate=off").unwrap();
        assert_eq!((place.options.get_host(), place.options.get_port()), ("db.example", 3307));
        assert_eq!((place.options.get_username(), place.options.get_database()), ("u", Some("cron")));
        assert_eq!((place.access, place.location.as_str()), (Access::Use, "mysql://u:***@db.example:3307/cron"));
        assert!(!format!("{place:?}").contains("p@ss"));
    }

    #[test]
    fn a_unix_socket_is_named_by_its_path() {
        let place = resolve("mysql://u@localhost/cron?socket=/run/mysqld/mysqld.sock").unwrap();
        assert_eq!(place.options.get_socket().unwrap().to_str(), Some("/run/mysqld/mysqld.sock"));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_without_its_secrets() {
        for (url, part) in [
            ("mysql://u:hunter2@h/d?sslmod=required", "\"sslmod\" is not known"),
            ("mysql://u:hunter2@h/d?ssl-mode=perhaps", "a parameter is wrong"),
            ("mysql://u:hunter2@h/d?migrate=yes", "\"on\" or \"off\""),
            ("mysql://u:hunter2@h", "names no database"),
        ] {
            let message = resolve(url).map(|place| panic!("{place:?}")).map_err(|error| error.to_string()).unwrap_err();
            assert!(message.contains(part) && !message.contains("hunter2"), "{message}");
        }
    }
}
