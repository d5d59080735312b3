//! What the jobs name and this host lacks.

use std::os::unix::fs::PermissionsExt;

use cronward::config::{Environment, lint};

/// A folder with a program, and a file that cannot be executed.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, mode) in [("push", 0o755), ("notes", 0o644)] {
        let path = folder.path().join(name);
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    folder
}

/// The codes and messages of what is lacking, with that folder as `HERE` and as the `PATH`.
fn lacking(folder: &tempfile::TempDir, text: &str, looks: bool) -> Vec<String> {
    let here = folder.path().display().to_string();
    let env = Environment::new("2026-11-21T12:00:00Z".parse().unwrap()).with("PATH", &here);
    let env = if looks { env.looking_at_host() } else { env };
    let (_, report) = lint("jobs.toml", text.replace("HERE", &here), &env).unwrap_or_else(|report| panic!("{report}"));
    let line = |finding: &cronward::config::Diagnostic| {
        assert_eq!(finding.severity, cronward::config::Severity::Warning);
        format!("{}: {}", finding.code, finding.message.replace(&here, "HERE"))
    };
    report.findings.iter().map(line).collect()
}

fn job(command: &str, lines: &str) -> String {
    format!("[jobs.a]\nschedule = \"0 * * * *\"\ncommand = {command}\n{lines}\n")
}

#[test]
fn what_a_job_names_and_the_host_lacks_is_a_warning() {
    let folder = folder();
    for (command, lines, expected) in [
        (r#"["push"]"#, "user = \"no-such-one\"", "no-such-user: there is no user \"no-such-one\" on this host"),
        (r#"["push"]"#, "group = \"no-such-one\"", "no-such-group: there is no group \"no-such-one\" on this host"),
        (r#"["push"]"#, "cwd = \"HERE/absent\"", "no-such-folder: there is no folder HERE/absent on this host"),
        (r#"["push"]"#, "cwd = \"HERE/push\"", "no-such-folder: there is no folder HERE/push on this host"),
        (r#"["HERE/push"]"#, "env_file = \"HERE/env\"", "no-such-file: there is no file HERE/env on this host"),
        (
            r#"["pull"]"#,
            "",
            "no-such-program: there is no program \"pull\" in the PATH of this shell; a service may have another one",
        ),
        (
            r#"["notes"]"#,
            "env = { PATH = \"HERE\" }",
            "no-such-program: there is no program \"notes\" in the PATH of the job",
        ),
        (r#"["HERE/notes"]"#, "", "no-such-program: there is no program HERE/notes on this host that can be executed"),
        (
            r#"["./pull"]"#,
            "cwd = \"HERE\"",
            "no-such-program: there is no program ./pull on this host that can be executed",
        ),
    ] {
        let text = job(command, lines);
        assert_eq!(lacking(&folder, &text, true), [expected], "{text}");
        assert_eq!(lacking(&folder, &text, false), [""; 0], "only where it is asked for: {text}");
    }
}

#[test]
fn what_is_there_or_depends_on_the_daemon_is_no_warning() {
    let folder = folder();
    for (command, lines) in [
        (r#"["push"]"#, "user = \"root\"\ngroup = \"0\"\ncwd = \"HERE\"\nenv_file = \"HERE/notes\""),
        (r#"["./push"]"#, "cwd = \"HERE\""),
        (r#"["push"]"#, "env = { PATH = \"/nowhere:HERE\" }"),
        // Relative to the folder of the daemon; a PATH that the file may set; a line of the shell.
        (r#"["./pull"]"#, "cwd = \"absent\""),
        (r#"["pull"]"#, "env_file = \"HERE/notes\""),
        (r#""pull | sort""#, ""),
        // Run by other nodes alone, or by none.
        (r#"["pull"]"#, "enabled = false"),
    ] {
        let text = job(command, lines);
        assert_eq!(lacking(&folder, &text, true), [""; 0], "{text}");
    }
}
