//! What a terminal of 80 columns gets of a command: `script` (util-linux) runs it in one.

use std::io::Read;
use std::process::{Command, Stdio};

use crate::process::Killed;
use crate::program::Ended;

/// Runs a command in a terminal; what it wrote, stdout and stderr as they came.
pub(crate) fn run(command: &Command, env: &[(&str, &str)]) -> Ended {
    script(command, "", env).output().unwrap().into()
}

/// What it has written once that is enough; then the terminal is gone.
pub(crate) fn until(command: &Command, is_enough: impl Fn(&str) -> bool) -> String {
    let mut terminal = Killed(script(command, "timeout --foreground 45", &[]).stdout(Stdio::piped()).spawn().unwrap());
    let (mut out, mut shown, mut part) = (terminal.0.stdout.take().unwrap(), Vec::new(), [0; 4_096]);
    loop {
        let length = out.read(&mut part).unwrap();
        shown.extend_from_slice(&part[..length]);
        let text = String::from_utf8_lossy(&shown);
        if length == 0 || is_enough(&text) {
            return text.into_owned();
        }
    }
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
