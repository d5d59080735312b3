//! From a url to a server: what the url may say, and whether the tables may be made there.

use std::fmt;

use url::Url;

use crate::store::{OpenError, StoreOptions, redact};

/// Where a server is.
#[derive(Clone)]
pub(in crate::store::sql) struct ServerPlace<O> {
    /// Holds the password: never printed.
    pub(in crate::store::sql) options: O,
    pub(in crate::store::sql) access: Access,
    /// For messages.
    pub(in crate::store::sql) location: String,
}

impl<O> fmt::Debug for ServerPlace<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("location", &self.location).field("access", &self.access).finish_non_exhaustive()
    }
}

/// How the tables are come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store::sql) enum Access {
    /// Missing tables are made.
    Migrate,
    /// They have to be there.
    Use,
}

impl Access {
    /// What the url allows, and whoever opens the store as well.
    pub(super) const fn within(self, options: &StoreOptions) -> Self {
        if options.migrate { self } else { Self::Use }
    }
}

pub(super) fn refused(url: &str, message: String) -> OpenError {
    OpenError::Url { url: redact(url), message }
}

/// Takes `migrate` out of the url, and refuses parameters that nobody knows: the driver would ignore them in silence.
pub(super) fn take_access(url: &mut Url, known: &[&str]) -> Result<Access, String> {
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    if let Some((unknown, _)) = pairs.iter().find(|(name, _)| name != "migrate" && !known.contains(&name.as_str())) {
        return Err(format!("parameter {unknown:?} is not known; known are {}, migrate", known.join(", ")));
    }
    let access = match pairs.iter().find(|(name, _)| name == "migrate").map(|(_, value)| value.as_str()) {
        None | Some("on") => Access::Migrate,
        Some("off") => Access::Use,
        Some(_) => return Err("migrate is \"on\" or \"off\"".to_owned()),
    };
    url.query_pairs_mut().clear().extend_pairs(pairs.iter().filter(|(name, _)| name != "migrate"));
    Ok(access)
}
