//! `${V}`, `${V:-default}`, `${V:?message}` and `$$` in string values. As in a shell, `:-` and `:?` also cover a variable
//! that is set but empty. Nothing is nested, and a value is never looked at again.

use std::ops::Range;

/// What is wrong with one reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// Where, in bytes of the text.
    pub(super) range: Range<usize>,
    /// A stable word.
    pub(super) code: &'static str,
    /// A lowercase fragment.
    pub(super) message: String,
    /// What to write.
    pub(super) hint: String,
}

/// The text with its references replaced; else all that is wrong with it.
pub(super) fn expand<'v>(text: &str, variable: impl Fn(&str) -> Option<&'v str>) -> Result<String, Vec<Problem>> {
    let mut out = String::with_capacity(text.len());
    let mut problems = Vec::new();
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('$')) {
        let dollar = at + found;
        out.push_str(text.get(at..dollar).unwrap_or(""));
        let (piece, end) = reference(text, dollar, &variable);
        match piece {
            Ok(value) => out.push_str(&value),
            Err(problem) => problems.push(problem),
        }
        at = end;
    }
    out.push_str(text.get(at..).unwrap_or(""));
    if problems.is_empty() { Ok(out) } else { Err(problems) }
}

/// What the reference at `dollar` stands for, and where it ends.
fn reference<'v>(
    text: &str,
    dollar: usize,
    variable: &impl Fn(&str) -> Option<&'v str>,
) -> (Result<String, Problem>, usize) {
    let after = text.get(dollar + 1..).unwrap_or("");
    if after.starts_with('$') {
        return (Ok("$".to_owned()), dollar + 2);
    }
    if let Some(inner) = after.strip_prefix('{') {
        let Some(length) = inner.find('}') else {
            return (Err(unclosed(dollar..text.len())), text.len());
        };
        let end = dollar + 2 + length + 1;
        let body = inner.get(..length).unwrap_or("");
        return (braced(body, dollar..end, variable), end);
    }
    let name: String = after.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        let end = dollar + 1 + name.len();
        return (Err(bare(&name, dollar..end)), end);
    }
    (Ok("$".to_owned()), dollar + 1)
}

fn braced<'v>(body: &str, range: Range<usize>, variable: &impl Fn(&str) -> Option<&'v str>) -> Result<String, Problem> {
    let length = body.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(body.len());
    let (name, rest) = body.split_at(length);
    if !is_variable_name(name) || rest.contains("${") {
        return Err(malformed(body, range));
    }
    let set = variable(name).filter(|value| !value.is_empty());
    if rest.is_empty() {
        return variable(name).map(str::to_owned).ok_or_else(|| unset(name, range));
    }
    if let Some(default) = rest.strip_prefix(":-") {
        return Ok(set.unwrap_or(default).to_owned());
    }
    if let Some(message) = rest.strip_prefix(":?") {
        return set.map(str::to_owned).ok_or_else(|| required(name, message, range));
    }
    Err(malformed(body, range))
}

/// Whether a text can name an environment variable.
pub(super) fn is_variable_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn unset(name: &str, range: Range<usize>) -> Problem {
    let message = format!("variable {name} is not set");
    Problem { range, code: "unset-variable", message, hint: format!("set it, or give a default: ${{{name}:-value}}") }
}

fn required(name: &str, message: &str, range: Range<usize>) -> Problem {
    let why = if message.is_empty() { "it is required" } else { message };
    let message = format!("variable {name} is not set: {why}");
    Problem { range, code: "unset-variable", message, hint: format!("set {name} in the environment of cronward") }
}

fn unclosed(range: Range<usize>) -> Problem {
    let message = "\"${\" without a closing \"}\"".to_owned();
    Problem { range, code: "bad-variable", message, hint: FORMS.to_owned() }
}

fn bare(name: &str, range: Range<usize>) -> Problem {
    let message = format!("${name} is not replaced");
    let hint = format!("write ${{{name}}} for the variable, or $${name} for the text");
    Problem { range, code: "bad-variable", message, hint }
}

fn malformed(body: &str, range: Range<usize>) -> Problem {
    let shown: String = body.chars().take(40).collect();
    let message = format!("${{{shown}}} is not a reference to a variable");
    Problem { range, code: "bad-variable", message, hint: FORMS.to_owned() }
}

const FORMS: &str = "write ${NAME}, ${NAME:-default} or ${NAME:?message}, and $$ for a dollar sign";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn with(text: &str) -> Result<String, Vec<String>> {
        let variable = |name: &str| match name {
            "A" => Some("1"),
            "EMPTY" => Some(""),
            "MONEY" => Some("${A}"),
            _ => None,
        };
        expand(text, variable)
            .map_err(|problems| problems.into_iter().map(|p| format!("{:?} {}", p.range, p.message)).collect())
    }

    #[test]
    fn each_form_is_replaced() {
        for (text, value) in [
            ("", ""),
            ("a${A}b", "a1b"),
            ("${B:-x y}", "x y"),
            ("${EMPTY:-x}", "x"),
            ("${EMPTY}", ""),
            ("${A:?needed}", "1"),
            ("$${A} costs $5 $", "${A} costs $5 $"),
            ("${B:-}", ""),
        ] {
            assert_eq!(with(text).as_deref(), Ok(value), "{text}");
        }
    }

    #[test]
    fn a_value_is_not_looked_at_again() {
        assert_eq!(with("${MONEY}").as_deref(), Ok("${A}"));
    }

    #[test]
    fn every_wrong_reference_is_told_with_its_place() {
        assert_eq!(
            with("${B} $A ${} ${A-b} ${C:?set it} ${D:-${A}"),
            Err(vec![
                "0..4 variable B is not set".to_owned(),
                "5..7 $A is not replaced".to_owned(),
                "8..11 ${} is not a reference to a variable".to_owned(),
                "12..18 ${A-b} is not a reference to a variable".to_owned(),
                "19..31 variable C is not set: set it".to_owned(),
                "32..41 ${D:-${A} is not a reference to a variable".to_owned(),
            ])
        );
        assert_eq!(with("x${A"), Err(vec!["1..4 \"${\" without a closing \"}\"".to_owned()]));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(\\$|\\{|\\}|:-|:\\?|A|ä|_){0,20}") {
            let _ = with(&text);
        }
    }
}
