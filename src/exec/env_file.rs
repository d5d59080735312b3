//! Files of `KEY=value` lines. Reads text only; a value is never part of an error, since it may be a secret.
//!
//! The form is that of systemd's `EnvironmentFile=` and of containers: one variable a line, `#` and blank lines skipped,
//! spaces around the value dropped, no expansion. A value in single quotes is taken as it stands; in double quotes a
//! backslash escapes `"`, `\`, `$` and `` ` ``. There are no comments behind a value: `#` is part of it.

use std::path::Path;

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("env_file {path} line {line}: {why}")]
pub(crate) struct EnvFileError {
    path: String,
    line: usize,
    why: &'static str,
}

/// Reads the variables of a text, in order; a later one of the same name wins with whoever applies them.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Vec<(String, String)>, EnvFileError> {
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
