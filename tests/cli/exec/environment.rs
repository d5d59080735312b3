//! What a command finds: variables, descriptors, signals, users.

use std::os::fd::AsFd;

use nix::unistd::{User, geteuid};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_command_finds_what_is_documented_and_nothing_of_the_daemon() {
    let launcher = inheriting(&[
        ("PATH", PATH),
        ("LANG", "C"),
        ("CRONWARD_STORE", "redis://:secret@h"),
        ("CRONWARD_JOB", "not this one"),
        ("REDIS_URL", "redis://:secret@h"),
        ("NOTIFY_SOCKET", "/run/x"),
        ("WATCHDOG_USEC", "1"),
        ("LISTEN_FDS", "1"),
        ("INVOCATION_ID", "x"),
    ]);
    // Also what a clone hides later.
    launcher.clone().hide(&["redis://:secret@h".to_owned()]);
    let mut command = direct(&["env"]);
    command.env.insert("OWN".to_owned(), "{slot}".to_owned());
    let text = end(&mut launcher.launch(&command, &run(), no_lease()).await).await.output.text;
    let mut found: Vec<_> = text.lines().collect();
    found.sort_unstable();
    let path = format!("PATH={PATH}");
    let [home, logname, shell, user] = account_variables();
    let wanted = [
        "CRONWARD_ATTEMPT=2",
        "CRONWARD_FENCE=1795269600002",
        "CRONWARD_JOB=push",
        "CRONWARD_LEASE_HELD=true",
        "CRONWARD_MAX_ATTEMPTS=3",
        "CRONWARD_NODE=a",
        "CRONWARD_RUN_ID=r-1",
        "CRONWARD_SCHEDULED_AT=2026-11-21T14:05:00Z",
        "CRONWARD_SLOT=2026-11-21T14Z",
        "CRONWARD_SLOT_END=2026-11-21T15:00:00Z",
        "CRONWARD_SLOT_START=2026-11-21T14:00:00Z",
        "CRONWARD_TRIGGER=schedule",
        &home,
        "LANG=C",
        &logname,
        "OWN={slot}",
        &path,
        &shell,
        &user,
    ];
    assert_eq!(found, wanted);
}

/// HOME, LOGNAME, SHELL and USER of the account that runs this test.
fn account_variables() -> [String; 4] {
    let own = User::from_uid(geteuid()).unwrap().expect("an account with an entry");
    let (home, shell) = (own.dir.display(), own.shell.display());
    [format!("HOME={home}"), format!("LOGNAME={}", own.name), format!("SHELL={shell}"), format!("USER={}", own.name)]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_account_decides_over_what_a_daemon_inherited_and_a_session_over_the_account() {
    let line = "echo HOME=$HOME; echo LOGNAME=$LOGNAME; echo SHELL=$SHELL; echo USER=$USER";
    let inherited = [("PATH", PATH), ("HOME", "/daemons"), ("USER", "daemons")];
    let mut wanted = account_variables();
    let exit = end(&mut inheriting(&inherited).launch(&shell(line), &run(), no_lease()).await).await;
    assert_eq!(exit.output.text.lines().collect::<Vec<_>>(), wanted);
    (wanted[0], wanted[3]) = ("HOME=/daemons".to_owned(), "USER=daemons".to_owned());
    let exit = end(&mut inheriting(&inherited).within_a_session().launch(&shell(line), &run(), no_lease()).await).await;
    assert_eq!(exit.output.text.lines().collect::<Vec<_>>(), wanted);
    let mut command = shell("echo $HOME");
    command.env.insert("HOME".to_owned(), "/files".to_owned());
    assert_eq!(output_of(&command).await, "/files\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tilde_in_cwd_is_the_home_of_the_user_who_runs_the_command() {
    let own = User::from_uid(geteuid()).unwrap().expect("an account with an entry");
    let mut users = vec![(None, own.dir)];
    if is_root() {
        users.push((Some("daemon".to_owned()), User::from_name("daemon").unwrap().unwrap().dir));
    }
    for (user, home) in users {
        let command = CommandSpec { user, cwd: Some("~".into()), ..shell("pwd -P") };
        assert_eq!(output_of(&command).await, format!("{}\n", home.canonicalize().unwrap().display()));
    }
    let (code, message) = refusal_of(&CommandSpec { cwd: Some("~/no-such-folder".into()), ..direct(&["true"]) }).await;
    assert!(code == 126 && message.contains("no-such-folder"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_another_user_an_env_file_is_not_read_through_a_link_to_a_file_of_root() {
    if !is_root() {
        return println!("inconclusive: only root may run a command as another user");
    }
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().canonicalize().unwrap();
    let [secret, link] = ["secret.env", "job.env"].map(|name| folder.join(name));
    std::fs::write(&secret, "SECRET=told\n").unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&secret, &link).unwrap();
    let reading = |path: &Path, user: Option<&str>| CommandSpec {
        env_file: Some(path.to_owned()),
        user: user.map(str::to_owned),
        ..shell("echo $SECRET")
    };
    let (code, message) = refusal_of(&reading(&link, Some("daemon"))).await;
    let wanted = format!(
        "env_file {} is not the job's user's own, and {0} is a link: name the file without links (realpath)",
        link.display()
    );
    assert_eq!((code, message), (126, wanted));
    assert_eq!(output_of(&reading(&secret, Some("daemon"))).await, "told\n", "root has named it");
    assert_eq!(output_of(&reading(&link, None)).await, "told\n", "the daemon's own links are its own affair");
}

#[tokio::test(flavor = "multi_thread")]
async fn env_wins_over_env_file_and_cronward_over_both() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("job.env");
    std::fs::write(&file, "# of the job\nA=file\nB='file'\nLANG=file\nCRONWARD_SLOT=file\n").unwrap();
    let mut command = CommandSpec { env_file: Some(file), ..shell("echo $A $B $LANG $CRONWARD_SLOT") };
    command.env.insert("B".to_owned(), "env".to_owned());
    assert_eq!(output_of(&command).await, "file env file 2026-11-21T14Z\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_env_file_that_cannot_be_used_is_126_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("job.env");
    for (bytes, part) in [
        (Some(&b"A=1\nB\n"[..]), "line 2: there is no '='"),
        (Some(b"A=\xff"), "job.env is not UTF-8 text"),
        (Some(&[b'#'; 1024 * 1024 + 1]), "job.env is larger than 1024 KiB"),
        (None, "job.env cannot be read: there is no such file"),
    ] {
        match bytes {
            Some(bytes) => std::fs::write(&file, bytes).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
        let (code, message) = refusal_of(&CommandSpec { env_file: Some(file.clone()), ..direct(&["true"]) }).await;
        assert!(code == 126 && message.contains(part) && message.contains("job.env"), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_env_file_that_is_no_regular_file_is_refused_and_never_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe.env");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let not_regular = |kind| format!("is not a regular file but a {kind}: write the text into a file");
    for (path, why) in [
        (pipe.as_path(), not_regular("pipe")),
        (dir.path(), "cannot be read: it is a directory".to_owned()),
        (Path::new("/dev/zero"), not_regular("device")),
    ] {
        let command = CommandSpec { env_file: Some(path.to_owned()), ..direct(&["true"]) };
        let (code, message) = tokio::time::timeout(LIMIT, refusal_of(&command)).await.expect("it is not waited for");
        assert_eq!((code, message), (126, format!("env_file {} {why}", path.display())));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn placeholders_are_for_lists_and_not_for_shell_lines() {
    let list = direct(&["echo", "--hour={slot}", "{{job}}", "{job}", "{attempt}"]);
    assert_eq!(output_of(&list).await, "--hour=2026-11-21T14Z {job} push 2\n");
    assert_eq!(output_of(&shell("echo '{slot}'")).await, "{slot}\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn stdin_is_empty() {
    assert_eq!(output_of(&shell("cat; readlink /proc/self/fd/0")).await, "/dev/null\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_descriptor_leaks_into_a_command() {
    // One that the daemon was born with, not closed on exec: at a high number, so that no listing has it by chance.
    let null = std::fs::File::open("/dev/null").unwrap();
    let leaky = rustix::io::fcntl_dupfd_cloexec(&null, 200).unwrap();
    rustix::io::fcntl_setfd(leaky.as_fd(), rustix::io::FdFlags::empty()).unwrap();
    // 3 is the listing itself.
    assert_eq!(output_of(&direct(&["ls", "/proc/self/fd"])).await, "0\n1\n2\n3\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_signal_is_blocked_or_ignored_in_a_command() {
    // As if the daemon had been started by nohup, and by one who does not care for children.
    let dir = tempfile::tempdir().unwrap();
    let line = format!("#!/bin/sh\ntrap '' HUP INT CHLD USR1 40\nexec {} \"$@\"\n", shim().display());
    let ignorant = script(&dir, "ignorant", &line, 0o755);
    let launcher = Launcher::new(ignorant.into(), Output::Capture);
    let command = direct(&["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]);
    let exit = end(&mut launcher.launch(&command, &run(), no_lease()).await).await;
    for line in exit.output.text.lines() {
        let mask = u64::from_str_radix(line.split_once(":\t").unwrap().1, 16).unwrap();
        // The C library keeps 32 and 33 to itself.
        assert_eq!(mask & !(0b11 << 31), 0, "{line}");
    }
    assert_eq!((exit.status, exit.output.text.lines().count()), (ExitStatus::Code(0), 2));
    assert_eq!(exit_of(&shell("kill -PIPE $$")).await.status, ExitStatus::Signal(13));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_user_or_group_is_126_and_named() {
    let user = CommandSpec { user: Some("no-such-user".to_owned()), ..direct(&["true"]) };
    let group = CommandSpec { group: Some("no-such-group".to_owned()), ..direct(&["true"]) };
    assert_eq!(refusal_of(&user).await, (126, "user \"no-such-user\" is not known on this machine".to_owned()));
    assert_eq!(refusal_of(&group).await, (126, "group \"no-such-group\" is not known on this machine".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_user_is_taken_as_a_whole_or_refused_with_the_way_out() {
    let line = "id -un; id -gn; id -Gn; echo $HOME $USER $LOGNAME $EXTRA";
    let mut command = CommandSpec { user: Some("daemon".to_owned()), ..shell(line) };
    command.env.insert("LOGNAME".to_owned(), "told".to_owned());
    // A daemon in a group that must not come along.
    let dir = tempfile::tempdir().unwrap();
    let groups = if is_root() { "setpriv --groups 4" } else { "" };
    let line = format!("#!/bin/sh\nexec {groups} {} \"$@\"\n", shim().display());
    let inherited = [("PATH", PATH), ("HOME", "/daemons"), ("USER", "daemons")];
    let environment = Environment::inherited(inherited.map(|(name, value)| (name.into(), value.into())));
    let shim = script(&dir, "shim", &line, 0o755);
    let launcher = Launcher::new(shim.into(), Output::Capture).with_environment(environment);
    let exit = end(&mut launcher.launch(&command, &run(), no_lease()).await).await;
    if is_root() {
        assert_eq!(exit.output.text, "daemon\ndaemon\ndaemon\n/usr/sbin daemon told\n");
    } else {
        assert!(
            matches!(exit.status, ExitStatus::NotStarted { code: 126, message } if message.contains("run the daemon as root"))
        );
    }
}

/// A launcher whose shim runs as nobody with these capabilities, which it hands to every program that it executes.
fn capable(dir: &tempfile::TempDir, capabilities: &str) -> Launcher {
    let flags = "--reuid=65534 --regid=65534 --clear-groups";
    let line = format!(
        "#!/bin/sh\nexec setpriv {flags} --inh-caps={capabilities} --ambient-caps={capabilities} {} \"$@\"\n",
        shim().display()
    );
    Launcher::new(script(dir, "capable", &line, 0o755).into(), Output::Capture)
}

/// Reading is for the folder of this program, which may be its owner's alone.
const SUFFICIENT: &str = "+setuid,+setgid,+kill,+dac_read_search";

#[tokio::test(flavor = "multi_thread")]
async fn a_command_has_none_of_the_capabilities_of_a_daemon_that_is_not_root() {
    if !is_root() {
        return println!("inconclusive: only root can give capabilities away");
    }
    let dir = tempfile::tempdir().unwrap();
    let line = "id -un; grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status | cut -f2 | sort -u";
    for (user, name) in [(Some("daemon"), "daemon"), (None, "nobody")] {
        let command = CommandSpec { user: user.map(str::to_owned), ..shell(line) };
        let exit = end(&mut capable(&dir, SUFFICIENT).launch(&command, &run(), no_lease()).await).await;
        assert_eq!(exit.output.text, format!("{name}\n0000000000000000\n"), "{exit:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_user_is_refused_where_the_command_could_not_be_stopped() {
    if !is_root() {
        return println!("inconclusive: only root can give capabilities away");
    }
    let dir = tempfile::tempdir().unwrap();
    let command = CommandSpec { user: Some("daemon".to_owned()), ..direct(&["true"]) };
    for (capabilities, lacking) in [
        ("+setuid,+setgid,+dac_read_search", "lacks CAP_KILL to"),
        ("+setuid,+kill,+dac_read_search", "lacks CAP_SETGID to"),
        ("+dac_read_search", "lacks CAP_SETUID, CAP_SETGID, CAP_KILL to"),
    ] {
        let exit = end(&mut capable(&dir, capabilities).launch(&command, &run(), no_lease()).await).await;
        let ExitStatus::NotStarted { code: 126, message } = exit.status else { panic!("{exit:?}") };
        assert!(message.starts_with("user \"daemon\": this process ") && message.contains(lacking), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_group_is_taken_or_refused() {
    let command = CommandSpec { group: Some("tty".to_owned()), ..shell("id -gn") };
    let exit = exit_of(&command).await;
    if is_root() {
        assert_eq!(exit.output.text, "tty\n");
    } else {
        assert!(matches!(exit.status, ExitStatus::NotStarted { code: 126, .. }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_daemons_own_user_needs_no_privilege() {
    let own = output_of(&shell("id -un")).await.trim_end().to_owned();
    let command = CommandSpec { user: Some(own.clone()), ..shell("id -un; echo $USER") };
    assert_eq!(output_of(&command).await, format!("{own}\n{own}\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_working_directory_is_entered_as_the_user() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let user = if is_root() { "daemon".to_owned() } else { output_of(&shell("id -un")).await.trim_end().to_owned() };
    let exit = exit_of(&CommandSpec { user: Some(user), ..shell_in(&dir, "true") }).await;
    if is_root() {
        assert!(matches!(exit.status, ExitStatus::NotStarted { code: 126, message } if message.contains("cwd")));
    } else {
        assert_eq!(exit.status, ExitStatus::Code(0));
    }
}
