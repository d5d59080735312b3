//! A command that must not outlast its lease: its keeper goes by the deadline, whoever else stands still.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use cronward::clock::{Clock, SystemClock};
use cronward::slot::LeaseDeadline;
use tokio::sync::watch;

use super::*;

/// Longer than any of these tests.
const FAR: Duration = Duration::from_secs(600);

/// Deadlines that something has to come before: the next where the machine stood still for so long.
const AHEAD: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(50)];

fn within(stop: Duration, kill: Duration) -> LeaseDeadline {
    let now = SystemClock.now().mono;
    LeaseDeadline { stop_at: now + stop, kill_at: now + kill }
}

fn passed() -> LeaseDeadline {
    let past = SystemClock.now().mono.minus(Duration::from_millis(1));
    LeaseDeadline { stop_at: past, kill_at: past }
}

/// How often it has said that it got TERM; the shell may say that its child was terminated, too.
fn terms(exit: &Exit) -> usize {
    exit.output.text.lines().filter(|line| *line == "term").count()
}

/// A command under a lease that lasts for ever, in a directory of its own, and what moves the lease.
async fn kept(dir: &tempfile::TempDir, line: &str) -> (Running, watch::Sender<Option<LeaseDeadline>>) {
    let (lease, renewals) = watch::channel(Some(within(FAR, FAR)));
    (launcher().launch(&shell_in(dir, line), &run(), renewals).await, lease)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_lease_is_not_renewed_gets_term_from_its_keeper() {
    let dir = tempfile::tempdir().unwrap();
    let line = "trap 'echo term; exit 0' TERM; echo $$ >command; while :; do sleep 0.01; done";
    let (mut running, lease) = kept(&dir, line).await;
    pid_in(dir.path(), "command");
    let deadline = within(Duration::from_millis(50), FAR);
    lease.send_replace(Some(deadline));
    let exit = end(&mut running).await;
    assert_eq!((&exit.status, terms(&exit)), (&ExitStatus::Code(0), 1));
    let lapsed = exit.lapsed.expect("the keeper says that it stopped it");
    assert!(deadline.stop_at <= lapsed && Some(lapsed) <= exit.ended, "{exit:?}");
    assert!(exit.note.is_some_and(|note| note.contains("not renewed in time")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ignores_term_or_left_the_group_is_killed_at_the_deadline() {
    let dir = tempfile::tempdir().unwrap();
    let line = "trap '' TERM; (setsid sh -c 'trap \"\" TERM; echo $$ >escaped; while :; do sleep 0.05; done' &)
        echo $$ >command; while :; do sleep 0.05; done";
    let (mut running, lease) = kept(&dir, line).await;
    let all = ["command", "escaped"].map(|name| pid_in(dir.path(), name));
    let deadline = within(Duration::ZERO, Duration::from_millis(300));
    lease.send_replace(Some(deadline));
    let exit = end(&mut running).await;
    assert_eq!(exit.status, ExitStatus::Signal(9));
    assert!(exit.ended >= Some(deadline.kill_at), "TERM did not end it: {exit:?}");
    all.into_iter().for_each(dies);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_command_is_ended_too() {
    let dir = tempfile::tempdir().unwrap();
    let (mut running, lease) = kept(&dir, "echo $$ >command; kill -STOP $$; sleep 60").await;
    pid_in(dir.path(), "command");
    lease.send_replace(Some(within(Duration::ZERO, FAR)));
    assert_eq!(end(&mut running).await.status, ExitStatus::Signal(15));
}

/// Tries it with a first deadline so far ahead. A machine that stands still for so long has shown nothing, and it is tried with a
/// later one.
async fn moves_on_in_time(tried: impl AsyncFn(Duration) -> Exit) {
    for ahead in AHEAD {
        let exit = tried(ahead).await;
        if exit.lapsed.is_none() {
            return assert_eq!(exit.status, ExitStatus::Code(4), "{exit:?}");
        }
    }
    panic!("the renewal was not heard");
}

/// Tells the keeper of a deadline, and gives it the time to hear of it.
async fn told(lease: &watch::Sender<Option<LeaseDeadline>>, deadline: LeaseDeadline) {
    lease.send_replace(Some(deadline));
    tokio::time::sleep(Duration::from_millis(100)).await;
}

async fn lasts_beyond(deadline: LeaseDeadline, running: &mut Running) {
    let span = deadline.stop_at.since(SystemClock.now().mono) + Duration::from_millis(100);
    // It ends before only where the keeper has stopped it, which its exit tells.
    let _ = tokio::time::timeout(span, running.wait()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_moves_the_deadline_on() {
    moves_on_in_time(async |ahead| {
        let dir = tempfile::tempdir().unwrap();
        let (mut running, lease) = kept(&dir, "echo $$ >command; until [ -e go ]; do sleep 0.01; done; exit 4").await;
        pid_in(dir.path(), "command");
        let first = within(ahead, ahead);
        told(&lease, first).await;
        lease.send_replace(Some(within(FAR, FAR)));
        lasts_beyond(first, &mut running).await;
        std::fs::write(dir.path().join("go"), "").unwrap();
        end(&mut running).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_lease_lapsed_before_it_was_started_is_not_started() {
    let dir = tempfile::tempdir().unwrap();
    let (_lease, renewals) = watch::channel(Some(passed()));
    let exit = end(&mut launcher().launch(&shell_in(&dir, "echo $$ >command"), &run(), renewals).await).await;
    assert!(matches!(exit.status, ExitStatus::NotStarted { code: 126, .. }) && exit.lapsed.is_some(), "{exit:?}");
    assert!(!dir.path().join("command").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_stopped_for_two_reasons_gets_term_once() {
    let dir = tempfile::tempdir().unwrap();
    // The shell looks at TERM first where both have come.
    let line =
        "trap 'echo term; echo $$ >got' TERM; trap 'exit 5' WINCH; echo $$ >command; while :; do sleep 0.01; done";
    let (mut running, lease) = kept(&dir, line).await;
    pid_in(dir.path(), "command");
    lease.send_replace(Some(within(Duration::ZERO, FAR)));
    pid_in(dir.path(), "got");
    running.terminate();
    running.signal(28);
    let exit = end(&mut running).await;
    assert_eq!((&exit.status, terms(&exit)), (&ExitStatus::Code(5), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_that_stood_still_hears_of_its_renewal_before_it_looks_at_the_deadline() {
    moves_on_in_time(async |ahead| {
        let dir = tempfile::tempdir().unwrap();
        let line = "echo $PPID >shim; until [ -e go ]; do sleep 0.01; done; exit 4";
        let (mut running, lease) = kept(&dir, line).await;
        let shim = pid_in(dir.path(), "shim");
        let first = within(ahead, FAR);
        told(&lease, first).await;
        signal(shim, Signal::STOP);
        // The renewal comes behind some of these.
        (0..8).for_each(|_| running.signal(28));
        told(&lease, within(FAR, FAR)).await;
        lasts_beyond(first, &mut running).await;
        signal(shim, Signal::CONT);
        std::fs::write(dir.path().join("go"), "").unwrap();
        end(&mut running).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_keeper_is_woken_to_kill() {
    let dir = tempfile::tempdir().unwrap();
    let (mut running, _lease) = kept(&dir, "trap '' TERM; echo $PPID >shim; while :; do sleep 0.05; done").await;
    signal(pid_in(dir.path(), "shim"), Signal::STOP);
    running.kill();
    assert_eq!(end(&mut running).await.status, ExitStatus::Signal(9));
}

/// The part of a daemon, in a process of its own: it launches under a lease, and never renews it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by other tests of this file, as a process to stop"]
async fn a_daemon_to_stop() {
    let dir = std::env::current_dir().unwrap();
    let line = "trap '' TERM; echo $$ >command; while :; do sleep 0.05; done";
    let ahead = Duration::from_secs(std::env::var(SECONDS).unwrap().parse().unwrap());
    let (_lease, renewals) = watch::channel(Some(within(ahead, ahead + Duration::from_secs(1))));
    let mut running = launcher().launch(&CommandSpec { cwd: Some(dir), ..shell(line) }, &run(), renewals).await;
    let exit = running.wait().await;
    std::fs::write("end", format!("{} {:?}", exit.lapsed.is_some(), exit.status)).unwrap();
}

/// The variable that tells it how long its lease lasts.
const SECONDS: &str = "SECONDS_OF_LEASE";

#[test]
fn the_command_of_a_stopped_daemon_is_dead_at_the_deadline_and_the_daemon_finds_out() {
    for ahead in AHEAD {
        let dir = tempfile::tempdir().unwrap();
        let mut command = itself("lease::a_daemon_to_stop");
        command.env(SECONDS, ahead.as_secs().to_string()).stdin(Stdio::null()).stdout(Stdio::null());
        let mut daemon = Killed(command.current_dir(dir.path()).spawn().unwrap());
        let has_told = || dir.path().join("end").exists();
        wait::until_true("the command", || process::pid_in(dir.path(), "command").is_some() || has_told());
        let Some(command) = process::pid_in(dir.path(), "command") else { continue };
        daemon.signal(Signal::STOP);
        wait::until_true("the end of the command", || !lives(command) || has_told());
        if has_told() {
            // The machine stood still for so long: the daemon was not stopped in time.
            continue;
        }
        daemon.signal(Signal::CONT);
        daemon.0.wait().unwrap();
        return assert_eq!(std::fs::read_to_string(dir.path().join("end")).unwrap(), "true Signal(9)");
    }
    panic!("the daemon was not stopped before the deadline");
}

#[test]
fn a_request_that_is_none_ends_the_command() {
    for garbage in [&[15; 17][..], b"stop stop stop stop", &[0; 400]] {
        let dir = tempfile::tempdir().unwrap();
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let mut shim = Command::new(shim());
        shim.args(["__shim", env!("CARGO_PKG_VERSION")]).env_clear().current_dir(dir.path());
        let mut shim = shim.stdin(std::os::fd::OwnedFd::from(theirs)).stdout(Stdio::null()).spawn().unwrap();
        let plan =
            "3\0/bin/sh\0-c\0echo $$ >command; while :; do sleep 0.05; done\0\0\0\0\0group\x000\0PATH=/usr/bin:/bin\0";
        ours.write_all(b"\n").unwrap();
        ours.write_all(&u64::try_from(plan.len()).unwrap().to_le_bytes()).unwrap();
        ours.write_all(plan.as_bytes()).unwrap();
        let command = pid_in(dir.path(), "command");
        ours.write_all(garbage).unwrap();
        dies(command);
        shim.wait().unwrap();
    }
}
