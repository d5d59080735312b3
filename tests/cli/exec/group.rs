//! A command is stopped with everything that it started.

use super::*;

/// Leaves its own number and its shim's, and waits to be stopped.
const PATIENT: &str = "echo $$ >command; echo $PPID >shim; while :; do sleep 0.05; done";

/// A child in the command's group whose parent is gone.
const DAEMONISED: &str = "(sh -c 'echo $$ >daemon; exec sleep 60' &)";

/// A child that left the command's session, too.
const ESCAPED: &str = "(setsid sh -c 'echo $$ >escaped; exec sleep 60' &)";

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_ignores_term_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut running = launch(&shell_in(&dir, &format!("trap '' TERM; {PATIENT}"))).await;
    let command = pid_in(dir.path(), "command");
    running.terminate();
    let waited = tokio::time::timeout(Duration::from_millis(300), running.wait()).await;
    assert!(waited.is_err() && lives(command), "TERM ended it");
    running.kill();
    let exit = end(&mut running).await;
    assert_eq!((exit.status, exit.note), (ExitStatus::Signal(9), None));
    assert!(!lives(command));
}

#[tokio::test(flavor = "multi_thread")]
async fn term_reaches_the_whole_group() {
    let dir = tempfile::tempdir().unwrap();
    let child = "sh -c 'trap \"echo child >got; exit\" TERM; echo $$ >child; while :; do sleep 0.01; done'";
    let mut running = launch(&shell_in(&dir, &format!("trap 'wait; exit 5' TERM; {child} & wait"))).await;
    pid_in(dir.path(), "child");
    running.terminate();
    assert_eq!(end(&mut running).await.status, ExitStatus::Code(5));
    assert_eq!(std::fs::read_to_string(dir.path().join("got")).unwrap(), "child\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn term_reaches_a_stopped_command() {
    let dir = tempfile::tempdir().unwrap();
    let mut running = launch(&shell_in(&dir, "echo $$ >command; kill -STOP $$; sleep 60")).await;
    pid_in(dir.path(), "command");
    running.terminate();
    assert_eq!(end(&mut running).await.status, ExitStatus::Signal(15));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_signals_are_passed_on() {
    let dir = tempfile::tempdir().unwrap();
    let line = format!("trap 'exit 7' HUP; {PATIENT}");
    let mut running = launch(&shell_in(&dir, &line)).await;
    pid_in(dir.path(), "shim");
    running.signal(1);
    assert_eq!(end(&mut running).await.status, ExitStatus::Code(7));
    // Nobody is there any more to take them.
    running.signal(1);
    running.terminate();
    running.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_leaves_behind_is_stopped_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let left = format!("{DAEMONISED}; {ESCAPED}; until [ -s daemon -a -s escaped ]; do sleep 0.01; done; exit 3");
    let exit = exit_of(&shell_in(&dir, &left)).await;
    assert_eq!(exit.status, ExitStatus::Code(3));
    assert_eq!(exit.note.as_deref(), Some("it left 2 processes behind, which were stopped"));
    assert!(!lives(pid_in(dir.path(), "daemon")) && !lives(pid_in(dir.path(), "escaped")));
}

fn sparing(command: CommandSpec) -> CommandSpec {
    CommandSpec { kill_mode: KillMode::Process, ..command }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_process_what_a_command_leaves_behind_lives_on() {
    let dir = tempfile::tempdir().unwrap();
    // As a daemon does it, both leave the command's output alone.
    let left = format!(
        "exec >/dev/null 2>&1; {DAEMONISED}; {ESCAPED}; until [ -s daemon -a -s escaped ]; do sleep 0.01; done; exit 3"
    );
    let exit = exit_of(&sparing(shell_in(&dir, &left))).await;
    assert_eq!((exit.status, exit.note), (ExitStatus::Code(3), None));
    let daemons = ["daemon", "escaped"].map(|name| pid_in(dir.path(), name));
    assert_eq!(daemons.map(lives), [true; 2]);
    daemons.into_iter().for_each(kill);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_process_a_kill_ends_the_group_of_the_command_and_no_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let mut running = launch(&sparing(shell_in(&dir, &format!("{DAEMONISED}; {ESCAPED}; {PATIENT}")))).await;
    let [daemon, escaped, command, shim] =
        ["daemon", "escaped", "command", "shim"].map(|name| pid_in(dir.path(), name));
    running.kill();
    let exit = end(&mut running).await;
    assert_eq!((exit.status, exit.note), (ExitStatus::Signal(9), None));
    [daemon, command, shim].into_iter().for_each(dies);
    assert!(lives(escaped));
    kill(escaped);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_behind_and_ignores_term_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let stubborn = "(setsid sh -c 'trap \"\" TERM; echo $$ >escaped; while :; do sleep 0.05; done' &)";
    let exit = exit_of(&shell_in(&dir, &format!("{stubborn}; until [ -s escaped ]; do sleep 0.01; done"))).await;
    assert_eq!(exit.status, ExitStatus::Code(0));
    assert!(exit.note.is_some_and(|note| note.contains("behind")));
    assert!(!lives(pid_in(dir.path(), "escaped")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_ends_by_itself_right_after_the_command_was_not_left_behind() {
    // The child waits for the end of what the command alone has open, and has a moment from there on. A machine that keeps it waiting
    // for longer has shown nothing.
    let line = "mkfifo open; (read line <open; echo late) & exec 3>open; echo early";
    let mut exits = Vec::new();
    for _ in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        let exit = exit_of(&shell_in(&dir, line)).await;
        if exit.note.is_none() {
            return assert_eq!(exit.output.text, "early\nlate\n");
        }
        exits.push(exit);
    }
    panic!("it was stopped each time: {exits:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_ends_everything_that_left_the_group() {
    let dir = tempfile::tempdir().unwrap();
    let mut running = launch(&shell_in(&dir, &format!("{DAEMONISED}; {ESCAPED}; {PATIENT}"))).await;
    let all = ["daemon", "escaped", "command", "shim"].map(|name| pid_in(dir.path(), name));
    running.kill();
    let exit = end(&mut running).await;
    assert_eq!((exit.status, exit.note), (ExitStatus::Signal(9), None));
    assert_eq!(all.map(lives), [false; 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_is_not_outrun_by_a_command_that_keeps_forking() {
    let dir = tempfile::tempdir().unwrap();
    let runner = "(setsid sh -c 'echo $$ >escaped; for i in $(seq 300); do (sleep 20 &); sleep 0.01; done' &)";
    let mut running = launch(&shell_in(&dir, &format!("{runner}; {PATIENT}"))).await;
    let shim = pid_in(dir.path(), "shim");
    pid_in(dir.path(), "escaped");
    running.kill();
    assert_eq!(end(&mut running).await.note, None, "nothing survived");
    dies(shim);
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_command_kills_everything_and_leaves_no_zombie() {
    let dir = tempfile::tempdir().unwrap();
    let running = launch(&shell_in(&dir, &format!("trap '' TERM; {DAEMONISED}; {ESCAPED}; {PATIENT}"))).await;
    let all = ["daemon", "escaped", "command", "shim"].map(|name| pid_in(dir.path(), name));
    drop(running);
    tokio::task::spawn_blocking(move || {
        all.into_iter().for_each(dies);
        let shim = format!("/proc/{}", all[3]);
        wait::until_true("the reaping of the shim", || !Path::new(&shim).exists());
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_leads_a_group_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let text = output_of(&shell_in(&dir, "echo $$ >command; cut -d' ' -f5 /proc/$$/stat /proc/$PPID/stat")).await;
    let (command, shim) = text.trim_end().split_once('\n').unwrap();
    assert_eq!(command, pid_in(dir.path(), "command").to_string());
    assert_ne!(command, shim);
}
