//! `cronward check` and the file it reads.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cronward::cli::check::{CheckArgs, Format, run};
use cronward::config::{Environment, LoadError, find, lint_file, load};

use super::{env, job};

struct Ran {
    code: u8,
    out: String,
    err: String,
}

fn check(path: &Path, format: Format) -> Ran {
    let args = CheckArgs { config: Some(path.to_owned()), format, json: false, no_host: false, no_color: true };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = run(&args, &env(), &mut out, &mut err, false).unwrap();
    Ran { code, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

/// A file in a folder of its own. The path is shown in reports as `FILE`.
fn check_text(text: impl AsRef<[u8]>, format: Format) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.toml");
    std::fs::write(&path, text).unwrap();
    let ran = check(&path, format);
    let hide = |text: String| text.replace(&path.display().to_string(), "FILE");
    Ran { code: ran.code, out: hide(ran.out), err: hide(ran.err) }
}

#[test]
fn a_good_file_is_explained_in_words_and_exits_0() {
    let text = job("")
        + "[jobs.nightly]\nschedule = \"0 3 * * *\"\ntimezone = \"Asia/Tokyo\"\nslot = \"tick\"\n\
                          command = [\"true\"]\nmax_attempts = 1\nenabled = false\n";
    let ran = check_text(text, Format::Pretty);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[0].starts_with("a        at minute 0 past every hour"), "{}", ran.out);
    assert!(lines[0].ends_with("; slot: hour; zone UTC; 3 attempts"), "{}", ran.out);
    assert!(lines[1].ends_with("; slot: each scheduled time; zone Asia/Tokyo; 1 attempt; disabled"), "{}", ran.out);
    let lacks = "store sqlite: single host only; waiting nodes poll every 250ms (no push notifications)";
    assert!(lines[2].starts_with("time zones: "), "{}", ran.out);
    assert_eq!(lines[3..], [lacks, "", "FILE: no errors"]);
}

#[test]
fn warnings_exit_0_and_errors_78_both_with_a_summary() {
    let warned = check_text(job("timeout = \"2h\""), Format::Pretty);
    assert_eq!(warned.code, 0);
    assert!(
        warned.out.contains("warning[long-timeout]") && warned.out.ends_with("\nFILE: 1 warning\n"),
        "{}",
        warned.out
    );
    let wrong = check_text(job("timeout = \"2h\"\nmax_attempts = 0\nslot = 3"), Format::Pretty);
    assert_eq!((wrong.code, wrong.err.as_str()), (78, ""));
    assert!(wrong.out.ends_with("\nFILE: 2 errors\n"), "{}", wrong.out);
}

#[test]
fn json_is_an_array_with_every_field() {
    let ran = check_text(job("max_attempts = 0"), Format::Json);
    assert_eq!(ran.code, 78);
    let findings: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        findings,
        serde_json::json!([{
            "file": "FILE", "line": 4, "column": 16, "severity": "error", "code": "out-of-range",
            "message": "max_attempts is 0, which is out of range", "fix": "from 1 to 999",
        }])
    );
    assert_eq!(check_text(job(""), Format::Json).out, "[]\n");
}

#[test]
fn a_missing_file_is_one_line_with_the_path_and_what_to_do() {
    let ran = check(Path::new("/nowhere/jobs.toml"), Format::Pretty);
    assert_eq!((ran.code, ran.out.as_str()), (78, ""));
    let expected =
        "error: no configuration: tried /nowhere/jobs.toml; write a jobs.toml, or name one with --config PATH\n";
    assert_eq!(ran.err, expected);
}

#[test]
fn a_file_that_is_not_text_is_told_with_the_place_in_both_formats() {
    let text = b"[node]\nname = \"\xe4\"\n";
    let ran = check_text(text, Format::Pretty);
    assert_eq!((ran.code, ran.out.as_str()), (78, ""));
    assert_eq!(ran.err, "error: FILE: is not UTF-8: byte 0xe4 at line 2, column 9; save the file as UTF-8\n");
    let json = check_text(text, Format::Json);
    let findings: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((findings[0]["code"].as_str(), findings[0]["line"].as_u64()), (Some("unreadable-file"), None));
}

#[test]
fn a_file_that_is_too_large_or_a_directory_is_not_read() {
    let ran = check_text("#".repeat(4 * 1024 * 1024 + 1), Format::Pretty);
    assert_eq!(ran.code, 78);
    assert_eq!(ran.err, "error: FILE: is larger than 4096 KiB: is it the right file?\n");
    let folder = tempfile::tempdir().unwrap();
    let ran = check(folder.path(), Format::Pretty);
    assert_eq!(ran.code, 78);
    assert!(ran.err.ends_with("cannot be read: it is a directory\n"), "{}", ran.err);
}

#[test]
fn a_file_with_secrets_that_everybody_can_read_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.toml");
    std::fs::write(&path, format!("[store]\nurl = \"redis://:pw@h\"\n{}", job(""))).unwrap();
    for (mode, told) in [(0o644, true), (0o640, false)] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let (_, report) = load(&path, &env()).unwrap();
        assert_eq!(report.findings.iter().any(|finding| finding.code == "file-mode"), told, "{mode:o}");
    }
}

#[test]
fn what_root_would_run_is_refused_where_others_can_write_it_and_check_says_so() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), job("")).unwrap();
    let mode = |mode| std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
    // Whoever is not root runs nothing as another user.
    let root = nix::unistd::geteuid().is_root();
    mode(0o600);
    assert!(load(file.path(), &env()).is_ok());
    mode(0o606);
    assert_eq!(load(file.path(), &env()).is_err(), root);
    let (_, report) = lint_file(file.path(), &env()).unwrap();
    assert_eq!(report.findings.iter().any(|finding| finding.code == "untrusted-file"), root);
    if root {
        mode(0o600);
        std::os::unix::fs::chown(file.path(), Some(65_534), None).unwrap();
        let refused = load(file.path(), &env()).unwrap_err().to_string();
        assert!(refused.contains("belongs to user 65534") && refused.contains("chown root "), "{refused}");
        let job = cronward::job::JobName::new("a").unwrap();
        assert!(cronward::config::load_job(file.path(), &env(), &job).is_err());
    }
}

#[test]
fn the_file_that_is_named_is_the_one_that_is_taken() {
    let file = tempfile::NamedTempFile::new().unwrap();
    assert_eq!(find(Some(file.path())).unwrap(), file.path());
}

#[test]
fn errors_of_a_file_are_given_to_the_caller_line_by_line() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), job("max_attempts = 0")).unwrap();
    let error = load(file.path(), &env()).unwrap_err();
    assert!(matches!(error, LoadError::Invalid(_)));
    assert!(error.to_string().ends_with(":4:16: error: max_attempts is 0, which is out of range (from 1 to 999)"));
}

#[test]
fn the_sample_has_no_errors_and_three_jobs_that_are_seen_at_once() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs.toml");
    let (config, report) = lint_file(&path, &Environment::new(env().now())).unwrap();
    let jobs: Vec<&str> = config.jobs.keys().map(|name| name.as_str()).collect();
    assert_eq!(jobs, ["flaky", "heartbeat", "hourly-push"]);
    assert_eq!(config.store.url, "sqlite");
    let codes: Vec<&str> = report.findings.iter().map(|finding| finding.code).collect();
    assert!(codes.is_empty(), "{report}");
}
