//! Output that is passed on, and stdin that is passed in, seen from outside a process that does so.

use std::io::{Read, Write};
use std::process::{Child, Stdio};

use super::*;

/// Runs the shell line in `LINE` and writes how it ended to `end`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by other tests of this file, as a process of its own"]
async fn a_process_that_passes_on() {
    let launcher = Launcher::new(shim(), Output::PassThrough);
    let exit = end(&mut launcher.launch(&shell(&std::env::var("LINE").unwrap()), &run(), no_lease()).await).await;
    launcher.passed_on().await;
    let text = exit.output.text.trim_start_matches(char::REPLACEMENT_CHARACTER);
    std::fs::write("end", format!("{:?} {text}", exit.status)).unwrap();
}

fn passing(dir: &Path, line: &str) -> Child {
    let mut command = itself("passing::a_process_that_passes_on");
    command.env("LINE", line).current_dir(dir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn end_in(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("end")).unwrap()
}

#[test]
fn output_is_passed_on_and_kept_and_stdin_passed_in() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = passing(dir.path(), "read word; echo \"got $word\"; sleep 0.05; echo wrong >&2; exit 3");
    process.stdin.take().unwrap().write_all(b"this\n").unwrap();
    let output = process.wait_with_output().unwrap();
    // The test harness writes there, too.
    assert!(String::from_utf8_lossy(&output.stdout).contains("\ngot this\n"), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "wrong\n");
    let end = end_in(dir.path());
    assert!(end == "Code(3) got this\nwrong\n", "{end}");
}

#[test]
fn a_reader_that_goes_away_ends_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = passing(dir.path(), "echo first; read word; head -c 1000000 /dev/zero; echo last; exit 4");
    let mut stdout = process.stdout.take().unwrap();
    let mut seen = Vec::new();
    while !seen.windows(6).any(|window| window == b"first\n") {
        let mut buffer = [0; 64];
        let count = stdout.read(&mut buffer).unwrap();
        assert!(count > 0, "it ended: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&buffer[..count]);
    }
    drop(stdout);
    process.stdin.take().unwrap().write_all(b"go\n").unwrap();
    process.wait().unwrap();
    let end = end_in(dir.path());
    assert!(end == "Code(4) last\n", "{end}");
}

#[test]
fn a_slow_reader_gets_everything() {
    let dir = tempfile::tempdir().unwrap();
    // More than our pipe holds, and less than ours and the command's together: the command ends, its output waits.
    let mut process = passing(dir.path(), "yes 1234567 | head -c 120000");
    drop(process.stdin.take());
    let mut stdout = process.stdout.take().unwrap();
    let (mut seen, mut page) = (Vec::new(), [0; 4096]);
    loop {
        // A page at a time, so that what is left takes longer than the grace for an end of file.
        std::thread::sleep(Duration::from_millis(150));
        match stdout.read(&mut page).unwrap() {
            0 => break,
            count => seen.extend_from_slice(&page[..count]),
        }
    }
    process.wait().unwrap();
    assert_eq!(String::from_utf8_lossy(&seen).matches("1234567\n").count(), 15_000);
}
