//! Whether a crontab has a user in each of its entries, as `/etc/crontab` and the files of `/etc/cron.d` have. Judged by its
//! place, else by its entries; the command line may say it instead.

use std::collections::BTreeSet;
use std::path::Path;

/// Accounts that any system may have, also the one that a crontab comes from.
const USUAL: [&str; 16] = [
    "root", "daemon", "nobody", "www-data", "mail", "man", "backup", "list", "news", "games", "postgres", "mysql",
    "apache", "nginx", "munin", "logcheck",
];

/// Names of accounts.
pub(super) struct Accounts(BTreeSet<String>);

impl Accounts {
    /// The usual ones, and those of a `passwd` file.
    pub(super) fn of(passwd: &str) -> Self {
        let listed = passwd.lines().filter_map(|line| line.split(':').next()).filter(|name| !name.is_empty());
        Self(listed.chain(USUAL).map(str::to_owned).collect())
    }

    /// Whether the word that follows the schedule is an account in every entry.
    pub(super) fn lead(&self, sixth_words: &[&str]) -> bool {
        let name = |word: &&str| self.0.contains(word.split([':', '/']).next().unwrap_or(""));
        !sixth_words.is_empty() && sixth_words.iter().all(name)
    }
}

/// Whether a path is that of a system crontab.
pub(super) fn is_systems(path: &Path) -> bool {
    let parent = path.parent().and_then(Path::file_name);
    let crontab = path.file_name().is_some_and(|name| name == "crontab");
    parent.is_some_and(|folder| folder == "cron.d" || (folder == "etc" && crontab))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_crontab_is_known_by_its_place_or_by_the_accounts_in_it() {
        for (path, system) in [
            ("/etc/crontab", true),
            ("/etc/cron.d/php", true),
            ("backup/etc/crontab", true),
            ("/var/spool/cron/crontabs/root", false),
            ("crontab", false),
        ] {
            assert_eq!(is_systems(Path::new(path)), system, "{path}");
        }
        let accounts = Accounts::of("app:x:1000:1000::/srv/app:/bin/sh\n");
        assert!(accounts.lead(&["root", "app", "app:www-data"]));
        assert!(!accounts.lead(&["root", "/usr/bin/true"]));
        assert!(!accounts.lead(&[]));
    }
}
