//! A command as cron hands it to a shell, with its `%` and its input, as the command of a job. Runs nothing.

use crate::cli::import::document;

/// Shells that know `exec <<`.
const POSIX: [&str; 8] = ["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "busybox"];

/// What `command = "…"` is run by.
const DEFAULT: &str = "/bin/sh";

/// A command and what it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piped {
    pub(super) line: String,
    /// None when cron gives it nothing to read.
    pub(super) input: Option<String>,
}

/// Splits a command at its first `%`, as cron does: `\%` is a percent sign; after the first `%` each further one is a line
/// end, and the whole ends with one.
pub(super) fn split(command: &str) -> Piped {
    let mut line = String::new();
    let mut chars = command.chars();
    let mut escaped = false;
    while let Some(c) = chars.next() {
        match (escaped, c) {
            (true, '%') => {
                line.pop();
                line.push('%');
            }
            (false, '%') => return Piped { line, input: input(chars.as_str()) },
            _ => line.push(c),
        }
        escaped = !escaped && c == '\\';
    }
    Piped { line, input: None }
}

/// What cron writes to the command; nothing for nothing.
fn input(text: &str) -> Option<String> {
    let mut written = String::new();
    let mut escaped = false;
    for c in text.chars() {
        let meant = match (escaped, c) {
            (false, '%') => '\n',
            (true, '%') => c,
            (true, _) => {
                written.push('\\');
                c
            }
            (false, _) => c,
        };
        // A backslash waits for what it stands before.
        escaped = c == '\\';
        if !escaped {
            written.push(meant);
        }
    }
    if escaped {
        written.push('\\');
    }
    if !written.ends_with('\n') {
        written.push('\n');
    }
    (!text.is_empty()).then_some(written)
}

/// The value of `command`, and what is to be told of it; else why the command cannot be written.
pub(super) fn command(command: &str, shell: &str) -> Result<(String, Vec<String>), String> {
    let Piped { line, input } = split(command);
    if line.trim().is_empty() {
        return Err("it has no command".to_owned());
    }
    let mut notes = Vec::new();
    let script = match input {
        None => line,
        Some(input) => {
            let name = shell.rsplit('/').next().unwrap_or("");
            if !POSIX.contains(&name) {
                return Err(format!(
                    "{shell} is given text to read after a %, which is written here for a POSIX shell only"
                ));
            }
            notes.push(
                "what stood after the first % is what the command reads; each further % was a line end".to_owned(),
            );
            with_input(&line, &input)
        }
    };
    if line_goes_on(&script) {
        notes.push(
            "cron has no lines that go on: the \\ at the end is part of the command, the next line stands alone"
                .to_owned(),
        );
    }
    if shell == DEFAULT {
        return Ok((document::string(&script), notes));
    }
    // A list is started without /bin/sh, and its braces are placeholders.
    let script = script.replace('{', "{{").replace('}', "}}");
    let program = shell.replace('{', "{{").replace('}', "}}");
    Ok((document::list(&[program, "-c".to_owned(), script]), notes))
}

fn line_goes_on(script: &str) -> bool {
    script.ends_with('\\') && !script.ends_with("\\\\")
}

/// A script that runs the command with this text as its input. A here-document is the whole shell's input from there on,
/// whatever the command is made of.
fn with_input(line: &str, input: &str) -> String {
    let mut mark = "INPUT".to_owned();
    while input.lines().any(|text| text == mark) {
        mark.push('_');
    }
    format!("exec <<'{mark}'\n{input}{mark}\n{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piped(command: &str) -> (String, Option<String>) {
        let piped = split(command);
        (piped.line, piped.input)
    }

    #[test]
    fn a_percent_sign_ends_the_command_and_a_backslash_keeps_it() {
        let some = |text: &str| Some(text.to_owned());
        for (command, line, input) in [
            ("date +\\%F", "date +%F", None),
            ("mail joe%Joe,%%Where?%", "mail joe", some("Joe,\n\nWhere?\n")),
            ("cat%a", "cat", some("a\n")),
            ("cat%", "cat", None),
            ("cat%5\\%", "cat", some("5%\n")),
            ("cat%a\\b\\", "cat", some("a\\b\\\n")),
            ("echo \\\\%a", "echo \\\\", some("a\n")),
            ("echo 'a\\b'", "echo 'a\\b'", None),
        ] {
            assert_eq!(piped(command), (line.to_owned(), input), "{command}");
        }
    }

    #[test]
    fn another_shell_is_a_list_with_its_braces_doubled() {
        assert_eq!(command("echo ${A}", "/bin/bash").unwrap().0, r#"["/bin/bash", "-c", "echo ${{A}}"]"#);
        assert_eq!(command("echo ${A}", "/bin/sh").unwrap().0, r#""echo ${A}""#);
    }

    #[test]
    fn a_text_to_read_never_ends_at_its_own_lines() {
        let (value, notes) = command("cat%INPUT%INPUT_", "/bin/sh").unwrap();
        assert_eq!(value, "'''\nexec <<'INPUT__'\nINPUT\nINPUT_\nINPUT__\ncat\n'''");
        assert_eq!(notes.len(), 1);
        assert!(command("cat%a", "/usr/bin/fish").unwrap_err().contains("POSIX"));
        assert!(command(" %a", "/bin/sh").unwrap_err().contains("no command"));
    }
}
