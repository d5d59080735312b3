//! Files of `KEY=value` lines.

use std::path::Path;

use super::is_one_line;
use crate::exec::env_file::parse;

/// A whole file. What is read can be given to a command, and says the same when it is written again.
pub fn env_file(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    match parse(Path::new("/etc/push.env"), text) {
        Ok(variables) => {
            let length: usize = variables.iter().map(|(name, value)| name.len() + value.len()).sum();
            assert!(length <= bytes.len(), "no more comes out than went in");
            assert!(variables.iter().all(|(name, value)| !format!("{name}{value}").contains('\0')));
            let written: String = variables.iter().map(|(name, value)| format!("{name}={}\n", quoted(value))).collect();
            assert_eq!(parse(Path::new("/etc/push.env"), &written).as_ref(), Ok(&variables));
            true
        }
        Err(error) => {
            is_one_line(&error.to_string());
            false
        }
    }
}

fn quoted(value: &str) -> String {
    let mut quoted = String::from("\"");
    for c in value.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted + "\""
}
