//! Files of `KEY=value` lines. A value is never part of an error, since it may be a secret.
//!
//! A file is read in a thread of its own, for [`READING`] at most: nobody waits for one that hangs, not even the end of this
//! process. Each path has one such thread at a time, so that a mount that hangs does not cost a thread for each attempt.
//!
//! The form is that of systemd's `EnvironmentFile=` and of containers: one variable a line, `#` and blank lines skipped,
//! spaces around the value dropped, no expansion. A value in single quotes is taken as it stands; in double quotes a
//! backslash escapes `"`, `\`, `$` and `` ` ``. There are no comments behind a value: `#` is part of it.

use std::collections::HashMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex, oneshot};

use crate::exec::accounts;
use crate::exec::messages::Refusal;
use crate::file;

/// How long a file may take to be read. A mount that hangs costs an attempt no more.
const READING: Duration = Duration::from_secs(10);

/// The largest file that is read, in bytes: as much as the arguments and variables of a program may have all told, more or less.
const LARGEST: u64 = 1024 * 1024;

/// The variables of a file.
pub(crate) type Variables = Vec<(String, String)>;

/// The files that are being read.
#[derive(Clone, Debug, Default)]
pub(super) struct EnvFiles(Arc<StdMutex<HashMap<PathBuf, Arc<Mutex<()>>>>>);

impl EnvFiles {
    /// Reads a regular file for a command of this user; of the daemon's own where none is named.
    pub(super) async fn read(&self, path: &Path, user: Option<&str>) -> Result<Variables, Refusal> {
        let user = user.map(str::to_owned);
        let bytes = self.in_turn(path, move |path| contents(path, user.as_deref())).await?;
        let text = String::from_utf8(bytes).map_err(|_| unreadable(path, &"is not UTF-8 text"))?;
        parse(path, &text).map_err(Refusal::cannot_run)
    }

    async fn in_turn<T: Send + 'static>(
        &self,
        path: &Path,
        read: impl FnOnce(&Path) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let (turn, its) = (self.turn(path), path.to_owned());
        let reading = async move {
            let turn = turn.lock_owned().await;
            let (answer, answered) = oneshot::channel();
            let reader = move || {
                let read = read(&its);
                drop(turn);
                // Nobody may wait for the answer any more.
                drop(answer.send(read));
            };
            std::thread::Builder::new().spawn(reader).map_err(|error| {
                Refusal::of_error(&error, format_args!("env_file {} cannot be read: {error}", path.display()))
            })?;
            answered.await.map_err(|_| unreadable(path, &"cannot be read: its reader is gone"))?
        };
        let read = tokio::time::timeout(READING, reading).await;
        let late = || {
            format!(
                "was not read within {} s: check whether its file system and the directory of accounts answer",
                READING.as_secs()
            )
        };
        read.map_err(|_| unreadable(path, &late()))?
    }

    /// Held by whoever reads this file. Those that nobody holds or waits for are forgotten.
    fn turn(&self, path: &Path) -> Arc<Mutex<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(path.to_owned()).or_default())
    }
}

/// What a file has. A command of another user gets nothing that this user could not read, unless root or the daemon's user has put it there.
fn contents(path: &Path, user: Option<&str>) -> Result<Vec<u8>, Refusal> {
    let other = user.map(accounts::find_user).transpose()?;
    let home = match &other {
        Some(user) => Some(user.dir.clone()),
        // Without an entry of the account, as for `cwd`, the home is that of the daemon's environment.
        None if accounts::is_in_home(path) => {
            accounts::own()?.map(|user| user.dir).or_else(|| std::env::var_os("HOME").map(PathBuf::from))
        }
        None => None,
    };
    let full = accounts::expand(path, home.as_deref(), "env_file")?;
    let uid = other.map(|user| user.uid).filter(|uid| *uid != nix::unistd::geteuid());
    let file = file::open_for(&full, uid.map(nix::unistd::Uid::as_raw)).map_err(|unopened| {
        let why = format!("env_file {} {}", path.display(), unopened.why);
        unopened.errno.map_or_else(|| Refusal::cannot_run(&why), |errno| Refusal::of_error(&errno.into(), &why))
    })?;
    file::read(file, LARGEST).map_err(|why| unreadable(path, &why))
}

fn unreadable(path: &Path, why: &dyn Display) -> Refusal {
    Refusal::cannot_run(format_args!("env_file {} {why}", path.display()))
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("env_file {path} line {line}: {why}")]
pub(crate) struct EnvFileError {
    path: String,
    line: usize,
    why: &'static str,
}

/// Reads the variables of a text, in order; a later one of the same name wins with whoever applies them.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Variables, EnvFileError> {
    let mut variables = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let variable = variable(text).map_err(|why| EnvFileError { path: path.display().to_string(), line, why })?;
        variables.push(variable);
    }
    Ok(variables)
}

fn variable(text: &str) -> Result<(String, String), &'static str> {
    let (key, value) = text.split_once('=').ok_or("there is no '='; write KEY=value")?;
    let key = key.trim_end();
    let named = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !named {
        return Err("a name is letters, digits and '_', not beginning with a digit");
    }
    let value = unquote(value.trim_start())?;
    if value.contains('\0') {
        return Err("a value cannot hold a NUL byte");
    }
    Ok((key.to_owned(), value))
}

fn unquote(value: &str) -> Result<String, &'static str> {
    if let Some(quoted) = value.strip_prefix('\'') {
        let (inner, after) = quoted.split_once('\'').ok_or("a ' is not closed")?;
        return nothing_after(after).map(|()| inner.to_owned());
    }
    let Some(quoted) = value.strip_prefix('"') else { return Ok(value.to_owned()) };
    let mut inner = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => return nothing_after(characters.as_str()).map(|()| inner),
            '\\' => match characters.next() {
                Some(escaped @ ('"' | '\\' | '$' | '`')) => inner.push(escaped),
                Some(other) => inner.extend(['\\', other]),
                None => break,
            },
            _ => inner.push(character),
        }
    }
    Err("a \" is not closed")
}

fn nothing_after(rest: &str) -> Result<(), &'static str> {
    if rest.trim().is_empty() { Ok(()) } else { Err("there is something behind the closing quote") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(String, String)>, String> {
        parse(Path::new("/etc/push.env"), text).map_err(|error| error.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_hangs_is_refused_in_time_and_costs_one_thread_however_often_it_is_tried() {
        let (files, path) = (EnvFiles::default(), Path::new("/mnt/job.env"));
        let (begun, readers) = std::sync::mpsc::channel();
        let (go, hung) = std::sync::mpsc::channel::<()>();
        let hung = Arc::new(StdMutex::new(hung));
        let hang = || {
            let (begun, hung) = (begun.clone(), Arc::clone(&hung));
            move |_: &Path| {
                begun.send(()).unwrap();
                let _ = hung.lock().unwrap().recv();
                Ok(())
            }
        };
        for _ in 0..3 {
            let refused = files.in_turn(path, hang()).await.unwrap_err();
            let why = "env_file /mnt/job.env was not read within 10 s: check whether its file system and the \
                       directory of accounts answer";
            assert_eq!(refused.message, why);
        }
        tokio::time::resume();
        assert_eq!(files.in_turn(Path::new("/etc/job.env"), |_| Ok(7)).await, Ok(7), "another file has its own turn");
        drop(go);
        assert_eq!(files.in_turn(path, |_| Ok(8)).await, Ok(8), "it has come to life again");
        drop(begun);
        assert_eq!(readers.iter().count(), 1);
    }

    #[test]
    fn variables_comments_and_quotes_are_read() {
        let text =
            "# a comment\n\nA=1\r\n  B = two words  \nC='$x \"y\" #'\nD=\"a \\\"b\\\" \\$ \\n\"\nE=\nF=a=b#c\nG=it's\n";
        let wanted =
            [("A", "1"), ("B", "two words"), ("C", "$x \"y\" #"), ("D", "a \"b\" $ \\n"), ("E", ""), ("F", "a=b#c")];
        let mut wanted: Vec<_> = wanted.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        wanted.push(("G".to_owned(), "it's".to_owned()));
        assert_eq!(read(text), Ok(wanted));
    }

    #[test]
    fn an_error_names_the_file_and_the_line_and_never_the_value() {
        for (text, why) in [
            ("A=1\nsecret", "line 2: there is no '='"),
            ("1A=secret", "line 1: a name is"),
            ("=secret", "line 1: a name is"),
            ("A B=secret", "line 1: a name is"),
            ("export A=secret", "line 1: a name is"),
            ("\n\nA='secret", "line 3: a ' is not closed"),
            ("A=\"secret\\", "line 1: a \" is not closed"),
            ("A='secret' x", "line 1: there is something behind"),
            ("A=\"secret\" # x", "line 1: there is something behind"),
            ("A=sec\0ret", "line 1: a value cannot hold a NUL"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with("env_file /etc/push.env ") && error.contains(why), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
