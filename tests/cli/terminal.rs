//! What a terminal of 80 columns gets of a command: `script` (util-linux) runs it in one.

use std::process::{Command, Stdio};

use crate::program::Ended;

/// Runs a command in a terminal; what it wrote, stdout and stderr as they came.
pub(crate) fn run(command: &Command, env: &[(&str, &str)]) -> Ended {
    script(command, "", env).output().unwrap().into()
}

/// The same, not started; `before` is what the shell puts before the command, like `timeout 3`.
pub(crate) fn script(command: &Command, before: &str, env: &[(&str, &str)]) -> Command {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let mut script = Command::new("script");
    script.args(["-qec", &format!("stty cols 80 rows 30; {before} {}", line.join(" ")), "/dev/null"]);
    script.env_clear().env("PATH", "/usr/bin:/bin").env("TERM", "xterm").envs(env.iter().copied());
    script.current_dir(command.get_current_dir().unwrap()).stdin(Stdio::null());
    script
}
