//! The tail of the output, and who may hold its pipe.

use super::*;

const FLOOD: u64 = 200 * 1024 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn stdout_and_stderr_are_kept_in_the_order_they_came() {
    let text = output_of(&shell("for i in 1 2 3; do echo out $i; echo err $i >&2; done")).await;
    assert_eq!(text, "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by the test below, as a process whose memory is its own"]
async fn a_process_that_is_flooded() {
    let exit = exit_of(&shell(&format!("yes 0123456 | head -c {FLOOD}"))).await;
    assert_eq!(exit.status, ExitStatus::Code(0));
    assert_eq!(exit.output.text, "0123456\n".repeat(8 * 1024));
    assert_eq!(exit.output.dropped_bytes, FLOOD - 64 * 1024);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak: u64 =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().split(' ').next()?.parse().ok()).unwrap();
    assert!(peak < 100 * 1024, "memory grew with the flood: {peak} KiB");
}

#[test]
fn a_flood_is_drained_and_its_end_kept() {
    let ended = itself("output::a_process_that_is_flooded").output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_is_the_jobs() {
    let command = CommandSpec { output_limit: 4, ..shell("printf 0123456789") };
    let output = exit_of(&command).await.output;
    assert_eq!((output.text.as_str(), output.dropped_bytes), ("6789", 6));
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_is_no_text_is_made_text() {
    assert_eq!(output_of(&shell(r"printf 'a\000b\377c'")).await, "a\u{fffd}b\u{fffd}c");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_background_child_that_holds_stdout_does_not_hold_up_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let exit = exit_of(&shell_in(&dir, "(trap '' TERM; sleep 60) & echo $! >child; echo done")).await;
    assert_eq!((exit.status, exit.output.text.as_str()), (ExitStatus::Code(0), "done\n"));
    assert!(!lives(pid_in(dir.path(), "child")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_that_holds_stdout_does_not_hold_up_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut running =
        launch(&shell_in(&dir, "echo $$ >command; until [ -e go ]; do sleep 0.01; done; echo done")).await;
    let stdout = format!("/proc/{}/fd/1", pid_in(dir.path(), "command"));
    let held = std::fs::OpenOptions::new().write(true).open(stdout).unwrap();
    std::fs::write(dir.path().join("go"), "").unwrap();
    let exit = end(&mut running).await;
    assert_eq!((exit.status, exit.output.text.as_str()), (ExitStatus::Code(0), "done\n"));
    drop(held);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_closes_its_output_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let exit = exit_of(&shell_in(&dir, "echo before; exec >&- 2>&-; sleep 0.05; echo $$ >after; exit 6")).await;
    assert_eq!((exit.status, exit.output.text.as_str()), (ExitStatus::Code(6), "before\n"));
    pid_in(dir.path(), "after");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_command_holds_its_output() {
    let held = "readlink /proc/$PPID/fd/1 /proc/$PPID/fd/2 | grep -q pipe";
    output_of(&shell(&format!("while {held}; do sleep 0.01; done"))).await;
}
