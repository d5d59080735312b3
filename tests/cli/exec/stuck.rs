//! Starts that hang, and shims that do not listen: whoever is told to stop a run ends it all the same, and says what has run of it.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use cronward::clock::{Clock, SystemClock};
use cronward::slot::LeaseDeadline;

use super::*;

const WINCH: i32 = 28;

/// In the place of a shim that a directory server or a working directory keeps waiting: it reads nothing and says nothing.
fn mute(dir: &tempfile::TempDir) -> Launcher {
    let text = format!("#!/bin/sh\necho $$ >{}/shim\nexec sleep 60\n", dir.path().display());
    Launcher::new(script(dir, "mute", &text, 0o755).into(), Output::Capture)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_hangs_ends_when_it_is_told_to() {
    for number in [15, 9, 2] {
        let dir = tempfile::tempdir().unwrap();
        let mut running = mute(&dir).launch(&shell_in(&dir, "echo ran >ran"), &run(), no_lease()).await;
        let shim = pid_in(dir.path(), "shim");
        running.signal(WINCH);
        match number {
            15 => running.terminate(),
            9 => running.kill(),
            number => running.signal(number),
        }
        let exit = end(&mut running).await;
        assert_eq!(exit.status, ExitStatus::Signal(number));
        let note = format!("it was stopped before it was started, while its cwd {:?} was looked up", dir.path());
        assert_eq!(exit.note, Some(note));
        assert!(!lives(shim));
    }
}

/// What is asked for before the attendant has had its first turn reaches the shim with the plan, before anything is started.
#[tokio::test]
async fn what_is_told_to_stop_before_it_is_started_ended_by_that_signal_and_has_not_run() {
    for number in [15, 9, 2, 1, 3] {
        let dir = tempfile::tempdir().unwrap();
        let mut running = launch(&shell_in(&dir, "echo ran >ran")).await;
        match number {
            15 => running.terminate(),
            9 => running.kill(),
            number => running.signal(number),
        }
        let exit = end(&mut running).await;
        assert_eq!(exit.status, ExitStatus::Signal(number), "{exit:?}");
        assert_eq!(exit.note.as_deref(), Some("it was stopped before it was started"));
        assert!(!dir.path().join("ran").exists());
    }
}

#[tokio::test]
async fn a_signal_that_is_only_passed_on_keeps_no_command_from_being_started() {
    for number in [10, 12, WINCH] {
        let mut running = launch(&shell("echo ran")).await;
        running.signal(number);
        let exit = end(&mut running).await;
        assert_eq!((&exit.status, &*exit.output.text), (&ExitStatus::Code(0), "ran\n"), "{exit:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_of_a_start_that_hangs_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let (user, group) = (Some("app".to_owned()), Some("adm".to_owned()));
    for (command, why) in [
        (direct(&["true"]), "because its shim did not answer"),
        (CommandSpec { user, group, ..direct(&["true"]) }, "while its user \"app\" or its group \"adm\" was looked up"),
    ] {
        let mut running = mute(&dir).launch(&command, &run(), no_lease()).await;
        running.kill();
        assert_eq!(end(&mut running).await.note, Some(format!("it was stopped before it was started, {why}")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_hangs_does_not_outlast_who_lets_go_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let running = mute(&dir).launch(&shell_in(&dir, "echo ran >ran"), &run(), no_lease()).await;
    let shim = pid_in(dir.path(), "shim");
    drop(running);
    tokio::task::spawn_blocking(move || dies(shim)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_nobody_reads_holds_up_no_kill() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = direct(&["true"]);
    // More than the socket takes.
    command.env.insert("LONG".to_owned(), "x".repeat(4 * 1024 * 1024));
    let mut running = mute(&dir).launch(&command, &run(), no_lease()).await;
    pid_in(dir.path(), "shim");
    running.kill();
    assert_eq!(end(&mut running).await.status, ExitStatus::Signal(9));
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_a_stopped_shim_does_not_read_hold_up_no_kill() {
    let dir = tempfile::tempdir().unwrap();
    let mut running = launch(&shell_in(&dir, "trap '' TERM; echo $PPID >shim; while :; do sleep 0.05; done")).await;
    signal(pid_in(dir.path(), "shim"), Signal::STOP);
    // More than the socket takes.
    (0..2_000).for_each(|_| running.signal(WINCH));
    running.kill();
    assert_eq!(end(&mut running).await.status, ExitStatus::Signal(9));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_moves_on_again_and_again_holds_up_no_kill_of_a_stopped_shim() {
    let dir = tempfile::tempdir().unwrap();
    let far = |seconds: u64| {
        let at = SystemClock.now().mono + Duration::from_secs(600 + seconds);
        Some(LeaseDeadline { stop_at: at, kill_at: at })
    };
    let (lease, renewals) = tokio::sync::watch::channel(far(0));
    let line = "trap '' TERM; echo $PPID >shim; while :; do sleep 0.05; done";
    let mut running = launcher().launch(&shell_in(&dir, line), &run(), renewals).await;
    signal(pid_in(dir.path(), "shim"), Signal::STOP);
    for seconds in 0..1_000 {
        lease.send_replace(far(seconds));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    running.kill();
    assert_eq!(end(&mut running).await.status, ExitStatus::Signal(9));
}

/// Holds a lease (fcntl(2)) on a file, so that whoever opens it waits, be it to execute it; and says when somebody does.
const HOLDER: &str = r#"
$| = 1; $SIG{IO} = sub { print "asked\n" };
my ($F_SETLEASE, $F_WRLCK) = (1024, 1);
open(my $file, "<", $ARGV[0]) or die; fcntl($file, $F_SETLEASE, $F_WRLCK) or die "no lease: $!";
print "held\n"; sleep 60 while 1;
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_cannot_be_read_is_given_up_and_never_runs() {
    let dir = tempfile::tempdir().unwrap();
    let program = script(&dir, "program", "#!/bin/sh\necho ran >ran\n", 0o755);
    let mut holder = Command::new("perl");
    holder.args(["-e", HOLDER, &program]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut holder = Killed(holder.spawn().unwrap());
    let mut said = BufReader::new(holder.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(said.next().as_deref(), Some("held"));
    let command = CommandSpec { cwd: Some(dir.path().to_owned()), ..direct(&[&program]) };
    let mut running = launch(&command).await;
    assert_eq!(said.next().as_deref(), Some("asked"), "the program is being opened");
    running.terminate();
    running.kill();
    let exit = end(&mut running).await;
    assert_eq!(exit.status, ExitStatus::Signal(9));
    let note = format!("it was killed before it was known to have started, while {program:?} was being executed");
    assert_eq!(exit.note, Some(note));
    wait::until_true("the end of all that was started", || !works_in(dir.path()));
    drop(holder);
    assert!(!dir.path().join("ran").exists());
}
