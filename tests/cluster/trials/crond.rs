//! Debian's own cron, once for each of two hosts, with the same crontab but for the node's name: `cronward exec` in front of
//! the command lets one of them run it, and the other one's cron has nothing to mail.
//!
//! Each cron has namespaces of its own: nothing of this machine's crontabs, spool, mail or pid files is seen or touched, and
//! it ends with the process that holds the namespaces. That takes root, or a machine that lets a user be root in a
//! namespace.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use crate::place::Place;
use crate::redis_server::RedisServer;
use crate::wait;

/// cron starts at the next full minute; and a busy machine takes its time.
const LIMIT: Duration = Duration::from_secs(150);

/// Makes the host's files those that programs see at the usual places, and becomes cron.
const BECOME_CRON: &str = "set -e
mount --make-rprivate /
mount --bind \"$0/sbin\" /usr/sbin
mount --bind \"$0/spool\" /var/spool/cron
mount --bind \"$0/run\" /run
mount --bind \"$0/cron.d\" /etc/cron.d
mount --bind \"$0/bin\" /usr/local/bin
if test -e /etc/crontab; then mount --bind \"$0/crontab\" /etc/crontab; fi
exec /usr/sbin/cron -f";

/// Takes a mail as any sendmail does: one file for each.
const SENDMAIL: &str = "#!/bin/sh
cat > \"$(mktemp MAILS/XXXXXX)\"
";

/// A host with a cron of its own.
struct Host {
    folder: PathBuf,
    cron: Child,
}

impl Host {
    fn start(place: &Place, name: &str, store: &str) -> Self {
        let folder = place.file(name);
        Self::with_crontabs(place, name, &crontab(&folder, name, store), &documented(store))
    }

    /// With this crontab of root, and this file in `/etc/cron.d`.
    fn with_crontabs(place: &Place, name: &str, own: &str, system: &str) -> Self {
        let folder = place.file(name);
        for part in ["sbin", "bin", "spool/crontabs", "run", "cron.d", "mails"] {
            std::fs::create_dir_all(folder.join(part)).unwrap();
        }
        std::fs::copy("/usr/sbin/cron", folder.join("sbin/cron"))
            .expect("Debian's cron: make test-servers installs it");
        std::fs::write(folder.join("crontab"), "").unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_cronward"), folder.join("bin/cronward")).unwrap();
        let billed = folder.with_file_name("billed").display().to_string();
        program(&folder.join("bin/bill"), &format!("#!/bin/sh\necho \"$0 $@\" >> {billed}\n"));
        std::fs::write(folder.join("cron.d/billing"), system).unwrap();
        let mails = folder.join("mails").display().to_string();
        program(&folder.join("sbin/sendmail"), &SENDMAIL.replace("MAILS", &mails));
        let spool = folder.join("spool/crontabs/root");
        std::fs::write(&spool, own).unwrap();
        std::fs::set_permissions(&spool, std::fs::Permissions::from_mode(0o600)).unwrap();
        let log = std::fs::File::create(place.file(&format!("cron-{name}.log"))).unwrap();
        let mut unshare = Command::new("unshare");
        if !rustix::process::geteuid().is_root() {
            unshare.args(["--user", "--map-root-user"]);
        }
        unshare.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "/bin/sh", "-c", BECOME_CRON]);
        unshare.arg(&folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Self { folder, cron: unshare.spawn().unwrap() }
    }

    /// The exit code of each `cronward exec` that has ended here.
    fn ended(&self) -> Vec<String> {
        let codes = std::fs::read_to_string(self.folder.join("ended")).unwrap_or_default();
        codes.lines().map(str::to_owned).collect()
    }

    /// What was mailed by the line that `subject` is part of.
    fn mails(&self, subject: &str) -> Vec<String> {
        let files = std::fs::read_dir(self.folder.join("mails")).unwrap();
        let mails = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
        let about = |mail: &String| mail.lines().any(|line| line.starts_with("Subject: ") && line.contains(subject));
        mails.filter(about).collect()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // The whole namespace dies with it.
        let _ = self.cron.kill();
        let _ = self.cron.wait();
    }
}

fn program(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The line of the README for `/etc/cron.d`, as it stands there but for the store, the time, and the folder of the program: that of
/// the packages is the machine's own.
fn documented(store: &str) -> String {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let line = readme.lines().find_map(|line| line.strip_prefix("0 * * * * root ")).expect("the README has the line");
    let line = line.replace("/usr/bin/cronward ", "/usr/local/bin/cronward ");
    format!("* * * * * root {}\n", line.replace("redis://redis.example/", store))
}

/// The guarded line, and one that shows that this cron mails what a command says.
fn crontab(folder: &Path, name: &str, store: &str) -> String {
    let (exec, ended) = (env!("CARGO_BIN_EXE_cronward"), folder.join("ended").display().to_string());
    let ran = folder.with_file_name("ran").display().to_string();
    let guarded = format!("{exec} exec --store {store} --node {name} --job bill --slot day --timezone {}", noon());
    let command = format!("/bin/sh -c 'echo $CRONWARD_NODE >> {ran}; echo the bill of today; sleep 1'");
    let mut lines = String::from("* * * * * echo unguarded\n");
    writeln!(lines, "* * * * * {guarded} -- {command}; echo $? >> {ended}").unwrap();
    lines
}

/// A zone in which it is about noon: the day lasts as long as the trial.
fn noon() -> String {
    static NOON: OnceLock<String> = OnceLock::new();
    let zone = NOON.get_or_init(|| {
        let hour = wait::now_ms() / 3_600_000 % 24;
        if hour == 12 { "UTC".to_owned() } else { format!("Etc/GMT{:+}", hour - 12) }
    });
    zone.clone()
}

pub(super) fn of_two_hosts_crons_one_runs_the_line_and_the_other_has_nothing_to_mail(place: &Place) {
    let server = RedisServer::start();
    let hosts = ["left", "right"].map(|name| Host::start(place, name, &server.url()));
    wait::within(LIMIT, "cron of both hosts has run its lines", || {
        hosts.iter().all(|host| !host.ended().is_empty() && !host.mails("unguarded").is_empty()).then_some(())
    });
    let billed = wait::within(LIMIT, "the documented line has run from /etc/cron.d", || {
        std::fs::read_to_string(place.file("billed")).ok().filter(|text| text.ends_with('\n'))
    });
    assert!(billed.starts_with("/usr/local/bin/bill --all\n"), "{billed}");
    let ran = std::fs::read_to_string(place.file("ran")).unwrap();
    let (winner, loser) = if ran.trim() == "left" { (&hosts[0], &hosts[1]) } else { (&hosts[1], &hosts[0]) };
    let mail = wait::until("what the command said is mailed", || winner.mails("exec").pop());
    assert!(mail.ends_with("\nthe bill of today\n"), "{mail}");
    assert!(hosts.iter().flat_map(Host::ended).all(|code| code == "0"));
    // Whoever has nothing to say has no mail in the making either: two lines are done, and one of them was mailed.
    wait::until_true("the other cron is done with both lines", || is_idle(loser));
    assert_eq!(loser.mails("exec"), Vec::<String>::new());
    assert_eq!(std::fs::read_to_string(place.file("ran")).unwrap().lines().count(), 1, "{ran}");
    let slot = place.cronward(&["attempts", "--store", &server.url(), "--json", "--all"]);
    let slots: Vec<serde_json::Value> = serde_json::from_str(&slot.stdout).unwrap();
    let slots: Vec<_> = slots.into_iter().filter(|slot| slot["job"] == "bill").collect();
    assert_eq!((&slots[0]["state"], &slots[0]["attempts"]), (&"done".into(), &1.into()), "{slots:?}");
}

/// Whether the cron of a host has no child: nothing runs, and nothing is being mailed.
fn is_idle(host: &Host) -> bool {
    let children = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let cron = children(host.cron.id());
    cron.split_whitespace().all(|pid| pid.parse().is_ok_and(|pid| children(pid).trim().is_empty()))
}

/// What a command can ask of its surroundings, a line each.
const SURROUNDINGS: &str = r#"
out=FOLDER/seen-by-${CRONWARD_JOB:+cronward}
{
    env | sort | grep -v ^CRONWARD_
    echo "folder $(pwd -P)"
    echo "umask $(umask)"
    echo "nice $(nice)"
    ulimit -a
    grep -E '^Sig(Blk|Ign)' /proc/self/status
    echo "descriptors" $(ls /proc/self/fd)
} > $out.new 2>&1
mv $out.new $out
"#;

pub(super) fn an_imported_line_finds_the_surroundings_that_cron_gives_it(place: &Place) {
    let folder = place.path().display().to_string();
    std::fs::write(place.file("look.sh"), SURROUNDINGS.replace("FOLDER", &folder)).unwrap();
    let crontab = format!("* * * * * /bin/sh {folder}/look.sh\n");
    let _host = Host::with_crontabs(place, "host", &crontab, "");
    std::fs::write(place.file("crontab"), &crontab).unwrap();
    let imported = place.cronward(&["import", "crontab", "--personal", "crontab"]);
    assert_eq!(imported.code, 0, "{imported:?}");
    place.jobs(&imported.stdout);
    let store = format!("sqlite://{folder}/store.db");
    let _node = place.node("a", &store).variable("HOME", "/nowhere").start();
    let [crons, ours] = ["seen-by-", "seen-by-cronward"]
        .map(|name| wait::within(LIMIT, name, || std::fs::read_to_string(place.file(name)).ok()));
    let has = |seen: &str, line: &str| seen.lines().any(|other| other == line);
    assert!(has(&ours, "USER=root") && has(&ours, "descriptors 0 1 2 3"), "{ours}");
    assert_eq!(common(&ours), common(&crons));
}

/// What cron gives on every host. Its descriptors, and the number of those that PAM allows, differ from one to the next; not each cron sets USER.
fn common(seen: &str) -> Vec<&str> {
    let differs = |line: &&str| ["USER=", "descriptors ", "nofiles "].iter().any(|start| line.starts_with(start));
    seen.lines().filter(|line| !differs(line)).collect()
}
