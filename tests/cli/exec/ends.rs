//! How a command ended, or why it did not begin.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_exit_code_is_recorded() {
    let exit = exit_of(&shell("exit 3")).await;
    assert_eq!((exit.status, exit.note), (ExitStatus::Code(3), None));
    assert_eq!(exit_of(&direct(&["true"])).await.status, ExitStatus::Code(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_ended_the_command_is_recorded() {
    assert_eq!(exit_of(&shell("kill -SEGV $$")).await.status, ExitStatus::Signal(11));
    // A real-time signal has a number but no name.
    assert_eq!(exit_of(&shell("kill -40 $$")).await.status, ExitStatus::Signal(40));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_found_is_127_and_named() {
    let (code, message) = refusal_of(&direct(&["no-such-program", "x"])).await;
    assert_eq!(code, 127);
    assert!(message.contains("\"no-such-program\" was not found in PATH") && message.contains("/usr/bin"), "{message}");
    let (code, message) = refusal_of(&direct(&["/no/such/program"])).await;
    assert_eq!((code, message.as_str()), (127, "\"/no/such/program\" was not found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_looked_up_in_the_path_of_the_command() {
    let dir = tempfile::tempdir().unwrap();
    script(&dir, "only-here", "#!/bin/sh\necho found\n", 0o755);
    let mut command = direct(&["only-here"]);
    command.env.insert("PATH".to_owned(), dir.path().display().to_string());
    assert_eq!(output_of(&command).await, "found\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_executed_is_126_and_named() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text, mode, part) in [
        ("plain", "echo no\n", 0o644, "Permission denied"),
        ("orphan", "#!/no/such/interpreter\n", 0o755, "the interpreter that it names is not"),
    ] {
        let path = script(&dir, name, text, mode);
        let (code, message) = refusal_of(&direct(&[&path])).await;
        assert!(code == 126 && message.contains(part) && message.contains(&path), "{code} {message}");
    }
    let (code, message) = refusal_of(&direct(&[dir.path().to_str().unwrap()])).await;
    assert!(code == 126 && message.contains("Permission denied"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_without_an_interpreter_line_is_run_by_the_shell_as_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let path = script(&dir, "bare", "echo \"ran $1\"\n", 0o755);
    assert_eq!(output_of(&direct(&[&path, "it"])).await, "ran it\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_working_directory_is_gone_to_or_named() {
    let dir = tempfile::tempdir().unwrap();
    let inside = std::fs::canonicalize(dir.path()).unwrap();
    assert_eq!(output_of(&shell_in(&dir, "pwd -P")).await.trim_end(), inside.to_str().unwrap());
    script(&dir, "here", "#!/bin/sh\necho relative\n", 0o755);
    let relative = CommandSpec { cwd: Some(inside), ..direct(&["./here"]) };
    assert_eq!(output_of(&relative).await, "relative\n");
    let (code, message) = refusal_of(&CommandSpec { cwd: Some("/no/such/dir".into()), ..direct(&["true"]) }).await;
    assert!(code == 126 && message.contains("cwd \"/no/such/dir\""), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_too_long_or_empty_or_holds_a_nul_is_refused() {
    let huge = "x".repeat(200 * 1024);
    for (words, part) in [
        (vec!["echo", &huge], "Argument list too long"),
        (vec![], "the command is empty"),
        (vec!["echo", "a\0b"], "an argument of the command holds a NUL"),
        (vec!["echo", "{hour}"], "unknown placeholder {hour}"),
    ] {
        let (code, message) = refusal_of(&direct(&words)).await;
        assert!(code == 126 && message.contains(part), "{code} {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shim_that_is_not_there_or_is_no_shim_is_named() {
    for (path, part) in
        [("/no/such/cronward", "the shim /no/such/cronward"), ("/bin/true", "the shim that was to start")]
    {
        let launcher = Launcher::new(path.into(), Output::Capture);
        let exit = end(&mut launcher.launch(&direct(&["true"]), &run(), no_lease()).await).await;
        let ExitStatus::NotStarted { code: 126, message } = exit.status else { panic!("{:?}", exit.status) };
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_shim_started_by_hand_says_who_starts_it() {
    let output = std::process::Command::new(shim()).arg("__shim").stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&output.stderr).contains("started by cronward itself"));
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_can_be_cancelled_and_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let mut running = launch(&shell_in(&dir, "until [ -e go ]; do sleep 0.01; done; echo out; exit 4")).await;
    for _ in 0..50 {
        let waited = tokio::time::timeout(std::time::Duration::from_millis(1), running.wait()).await;
        assert!(waited.is_err(), "it ended: {waited:?}");
    }
    std::fs::write(dir.path().join("go"), "").unwrap();
    let exit = end(&mut running).await;
    assert_eq!((&exit.status, exit.output.text.as_str()), (&ExitStatus::Code(4), "out\n"));
    assert_eq!(end(&mut running).await, exit);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_commands_at_once_all_end() {
    let all = (0..100).map(|number| async move { exit_of(&shell(&format!("exit {number}"))).await.status });
    let statuses = futures_util::future::join_all(all).await;
    assert_eq!(statuses, (0..100).map(ExitStatus::Code).collect::<Vec<_>>());
}
