//! Whether a crontab has a user in each of its entries, as `/etc/crontab` and the files of `/etc/cron.d` have. Judged by its
//! place, else by its entries; the command line may say it instead.

use std::collections::BTreeSet;
use std::path::Path;

/// Accounts that any system may have, also the one that a crontab comes from.
const USUAL: [&str; 16] = [
    "root", "daemon", "nobody", "www-data", "mail", "man", "backup", "list", "news", "games", "postgres", "mysql",
    "apache", "nginx", "munin", "logcheck",
];

/// What entries begin with where they name no user: programs that a machine may lack and a shell's own words. What the
/// machine has in `/usr/bin` is no user either.
const PROGRAMS: [&str; 47] = [
    "bash", "case", "cd", "chronic", "command", "cronward", "curl", "docker", "echo", "env", "eval", "exec", "export",
    "find", "flock", "for", "if", "ionice", "java", "kubectl", "nice", "node", "perl", "pg_dump", "php", "psql",
    "python", "python3", "read", "restic", "rsync", "ruby", "set", "sh", "sleep", "source", "test", "timeout", "trap",
    "type", "ulimit", "umask", "unset", "until", "wait", "wget", "while",
];

/// Names of accounts.
pub(super) struct Accounts(BTreeSet<String>);

/// What follows the schedule of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lead {
    /// The line of the entry, from 1.
    pub(super) line: usize,
    /// The sixth word: the user, in a system crontab.
    pub(super) word: String,
    /// Whether more comes after it: a user alone has no command.
    pub(super) followed: bool,
}

/// Whether a crontab has a user in each entry, and which words made that a guess.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Judged<'l> {
    pub(super) system: bool,
    /// Words that may be users and that no account of this machine is called; each with its first line.
    pub(super) doubted: Vec<&'l Lead>,
}

impl Accounts {
    /// The usual ones, and those of a `passwd` file.
    pub(super) fn of(passwd: &str) -> Self {
        let listed = passwd.lines().filter_map(|line| line.split(':').next()).filter(|name| !name.is_empty());
        Self(listed.chain(USUAL).map(str::to_owned).collect())
    }

    /// Judges by the words that follow the schedules. A system crontab is one in which each may be a user; a crontab of
    /// another machine has users that this one lacks, and they are told from commands by their look: a name, no program, and
    /// a command behind it. That is a guess, so the words are answered, to be told of. Where one entry surely begins with a
    /// command, nothing is guessed.
    pub(super) fn judge<'l>(&self, leads: &'l [Lead], is_program: impl Fn(&str) -> bool) -> Judged<'l> {
        let known = |lead: &Lead| lead.followed && self.0.contains(account(&lead.word));
        let likely = |lead: &Lead| {
            let name = account(&lead.word);
            lead.followed && is_name(name) && !PROGRAMS.contains(&name) && !is_program(name)
        };
        let system = !leads.is_empty() && leads.iter().all(|lead| known(lead) || likely(lead));
        let sure = leads.iter().any(|lead| !lead.followed || !is_name(account(&lead.word)));
        // In a system's crontab the users that this machine lacks; in a user's own one whatever may be a user.
        let guessed = |lead: &Lead| if system { !known(lead) } else { !sure && (known(lead) || likely(lead)) };
        let mut told = BTreeSet::new();
        let doubted = leads.iter().filter(|lead| guessed(lead) && told.insert(&lead.word)).collect();
        Judged { system, doubted }
    }
}

/// `user`, `user:group` or `user/class`.
fn account(word: &str) -> &str {
    word.split([':', '/']).next().unwrap_or("")
}

/// Whether useradd(8) would take the name.
fn is_name(text: &str) -> bool {
    let first = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    first && text.len() <= 32 && text.strip_suffix('$').unwrap_or(text).chars().all(allowed)
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
    fn a_system_crontab_is_known_by_its_place() {
        for (path, system) in [
            ("/etc/crontab", true),
            ("/etc/cron.d/php", true),
            ("backup/etc/crontab", true),
            ("/var/spool/cron/crontabs/root", false),
            ("crontab", false),
        ] {
            assert_eq!(is_systems(Path::new(path)), system, "{path}");
        }
    }

    fn lead(word: &str) -> Lead {
        Lead { line: 1, word: word.to_owned(), followed: true }
    }

    fn judged(words: &[&str]) -> (bool, Vec<String>) {
        let leads: Vec<Lead> = words.iter().map(|word| lead(word)).collect();
        let accounts = Accounts::of("app:x:1000:1000::/srv/app:/bin/sh\n");
        let judged = accounts.judge(&leads, |name| name == "logrotate");
        (judged.system, judged.doubted.iter().map(|lead| lead.word.clone()).collect())
    }

    #[test]
    fn a_crontab_whose_entries_all_begin_with_an_account_is_a_system_s() {
        assert_eq!(judged(&["root", "app", "app:www-data"]), (true, vec![]));
        assert_eq!(judged(&["root", "/usr/bin/true"]), (false, vec![]));
        assert_eq!(judged(&[]), (false, vec![]));
    }

    #[test]
    fn an_account_of_another_machine_is_a_guess_that_is_told() {
        let doubted = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(judged(&["deploy", "root", "deploy"]), (true, doubted(&["deploy"])));
        assert_eq!(judged(&["deploy", "php", "root"]), (false, doubted(&["deploy", "root"])));
        assert_eq!(judged(&["deploy", "/usr/bin/true"]), (false, vec![]), "one that is surely a command decides");
        for program in ["php", "cd", "logrotate", "./run", "[", "A=b", "MyTool", "$HOME/bin/x", "test"] {
            assert_eq!(judged(&[program]), (false, vec![]), "{program}");
        }
        let alone = [Lead { followed: false, ..lead("deploy") }];
        let judged = Accounts::of("").judge(&alone, |_| false);
        assert!(!judged.system && judged.doubted.is_empty(), "a user alone has no command");
    }
}
