//! Deaths of those who keep a command: the daemon's, the shim's, the runtime's.

use std::process::Stdio;

use super::*;

const JOB: &str = "trap '' TERM HUP
(sh -c 'trap \"\" TERM HUP; echo $$ >daemon; sleep 60' &)
(setsid sh -c 'trap \"\" TERM HUP; echo $$ >escaped; sleep 60' &)
sh -c 'echo $$ >child; sleep 60' &
echo $$ >command; echo $PPID >shim; while :; do sleep 0.05; done";

/// The part of a daemon, in a process of its own. It launches, says so, and waits.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by other tests of this file, as a process to kill"]
async fn a_daemon_to_kill() {
    let dir = std::env::current_dir().unwrap();
    let mut running = launch(&CommandSpec { cwd: Some(dir), ..shell(JOB) }).await;
    running.wait().await;
}

fn daemon(dir: &Path) -> Killed {
    let mut command = itself("death::a_daemon_to_kill");
    Killed(command.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
}

fn all_of(dir: &Path) -> [u32; 5] {
    ["daemon", "escaped", "child", "command", "shim"].map(|name| pid_in(dir, name))
}

#[test]
fn the_kill_of_the_daemon_ends_the_command_and_everything_that_left_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut daemon = daemon(dir.path());
    let all = all_of(dir.path());
    assert_eq!(all.map(lives), [true; 5]);
    daemon.kill();
    all.into_iter().for_each(dies);
}

#[test]
fn a_stop_of_the_daemon_does_not_touch_the_command_and_its_kill_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = daemon(dir.path());
    let all = all_of(dir.path());
    daemon.signal(Signal::STOP);
    assert_eq!(all.map(lives), [true; 5]);
    drop(daemon);
    all.into_iter().for_each(dies);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kill_of_the_shim_ends_the_command_and_its_group() {
    let dir = tempfile::tempdir().unwrap();
    let mut running = launch(&shell_in(&dir, JOB)).await;
    let [daemon, escaped, child, command, shim] = all_of(dir.path());
    kill(shim);
    let exit = end(&mut running).await;
    assert_eq!(exit.status, ExitStatus::Signal(9));
    // The command runs a moment before the shim has said so.
    let says_so = |note: &str| {
        note.contains("its keeper was killed") || note.contains("killed before it was known to have started")
    };
    assert!(exit.note.as_deref().is_some_and(says_so), "{exit:?}");
    [daemon, child, command].into_iter().for_each(dies);
    // What left the group and lost the shim is nobody's any more; the module says so.
    kill(escaped);
}

#[test]
fn the_kill_of_the_shim_ends_the_command_even_when_the_daemon_cannot() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = daemon(dir.path());
    let [_, escaped, child, command, shim] = all_of(dir.path());
    daemon.signal(Signal::STOP);
    kill(shim);
    dies(command);
    daemon.signal(Signal::CONT);
    dies(child);
    kill(escaped);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_term_to_the_shim_does_not_end_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut running = launch(&shell_in(&dir, "echo $PPID >shim; until [ -e go ]; do sleep 0.01; done; exit 8")).await;
    let shim = pid_in(dir.path(), "shim");
    for number in [Signal::TERM, Signal::HUP, Signal::INT] {
        signal(shim, number);
    }
    std::fs::write(dir.path().join("go"), "").unwrap();
    assert_eq!(end(&mut running).await.status, ExitStatus::Code(8));
}

#[test]
fn the_end_of_the_runtime_ends_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let mut running = runtime.block_on(launch(&shell_in(&dir, JOB)));
    let all = all_of(dir.path());
    runtime.shutdown_background();
    all.into_iter().for_each(dies);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let exit = runtime.block_on(running.wait());
    assert_eq!(exit.status, ExitStatus::Signal(9));
    assert!(exit.note.is_some_and(|note| note.contains("nobody attends")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launch_that_is_abandoned_starts_nothing_that_lasts() {
    let dir = tempfile::tempdir().unwrap();
    for wait in 0..20 {
        let command = shell_in(&dir, &format!("echo $$ >command{wait}; sleep 60"));
        let launcher = launcher();
        let launch = async { drop(launcher.launch(&command, &run(), no_lease()).await) };
        let _ = tokio::time::timeout(Duration::from_micros(wait * 100), launch).await;
    }
    // Whatever had come as far as to leave its number is dead soon, too.
    tokio::task::spawn_blocking(move || {
        wait::until_true("the end of all", || {
            let files = std::fs::read_dir(dir.path()).unwrap().flatten();
            let pids = files.filter_map(|file| std::fs::read_to_string(file.path()).ok()?.trim().parse().ok());
            !pids.into_iter().any(lives) && !works_in(dir.path())
        });
    })
    .await
    .unwrap();
}
