//! From a url to what sqlx connects with. Only parameters that are known are passed on, so that none is ignored in silence.

use std::fmt;

use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;

use crate::store::sql::server::{Access, take_access};
use crate::store::{OpenError, redact};

/// The url's parameters, as sqlx and libpq name them.
const PARAMETERS: [&str; 10] =
    ["sslmode", "sslrootcert", "sslcert", "sslkey", "host", "port", "dbname", "user", "password", "application_name"];

/// Where the server is.
#[derive(Clone)]
pub(super) struct Place {
    /// Holds the password: never printed.
    pub(super) options: PgConnectOptions,
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
    let options = PgConnectOptions::from_url(&parsed).map_err(|_| refuse(format!("a parameter is wrong: {FORM}")))?;
    let named = parsed.query_pairs().any(|(name, _)| name == "application_name");
    let options = if named { options } else { options.application_name("cronward") };
    Ok(Place { options: options.disable_statement_logging(), access, location: redact(url) })
}

const FORM: &str = "write postgres://user:password@host:5432/database, special characters percent-encoded";

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> String {
        resolve(url).map(|place| panic!("{place:?}")).map_err(|error| error.to_string()).unwrap_err()
    }

    #[test]
    fn a_url_says_host_user_database_and_whether_tables_may_be_made() {
        let place = resolve("postgres://u:p%40ss@db.example:5433/cron?migrate=off").unwrap();
        assert_eq!((place.options.get_host(), place.options.get_port()), ("db.example", 5433));
        assert_eq!((place.options.get_username(), place.options.get_database()), ("u", Some("cron")));
        assert_eq!((place.access, place.location.as_str()), (Access::Use, "postgres://u:***@db.example:5433/cron"));
        assert_eq!(resolve("postgres://h/d").unwrap().access, Access::Migrate);
    }

    #[test]
    fn a_unix_socket_is_named_by_its_folder() {
        let place = resolve("postgres:///cron?host=/run/postgresql&user=u").unwrap();
        assert_eq!(place.options.get_socket().unwrap().to_str(), Some("/run/postgresql"));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_without_its_secrets() {
        for (url, part) in [
            ("postgres://u:hunter2@h/d?sslmod=require", "\"sslmod\" is not known"),
            ("postgres://u:hunter2@h/d?sslmode=perhaps", "a parameter is wrong"),
            ("postgres://u:hunter2@h/d?migrate=yes", "\"on\" or \"off\""),
            ("postgres://u:hunter2@h:port/d", "write postgres://"),
        ] {
            let message = refusal(url);
            assert!(message.contains(part) && !message.contains("hunter2"), "{message}");
        }
    }
}
