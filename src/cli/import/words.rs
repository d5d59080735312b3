//! The words of a shell line, as far as a name needs them: simple commands, quotes taken off. No shell: it expands nothing,
//! and what it makes of a line only ever names a job.

/// The simple commands of a line, each a list of words without redirections.
pub(super) fn commands(line: &str) -> Vec<Vec<String>> {
    let mut splitter = Splitter::default();
    let mut chars = line.chars().peekable();
    let mut quote = None;
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('"') | None, '\\') => splitter.put(chars.next().unwrap_or('\\')),
            (Some(_), c) => splitter.put(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                splitter.open();
            }
            (None, ' ' | '\t') => splitter.end_word(),
            // `2>&1` and `&>file` are redirections, not ends.
            (None, '&') if splitter.redirects() || chars.peek() == Some(&'>') => splitter.put(c),
            (None, ';' | '&' | '|' | '(' | ')' | '\n') => splitter.end_command(),
            (None, c) => splitter.put(c),
        }
    }
    splitter.end_command();
    splitter.commands
}

#[derive(Default)]
struct Splitter {
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    word: Option<String>,
    /// The next word is where a redirection goes.
    target: bool,
}

impl Splitter {
    fn put(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    /// A word has begun, even if nothing comes between its quotes.
    fn open(&mut self) {
        self.word.get_or_insert_default();
    }

    fn redirects(&self) -> bool {
        self.word.as_ref().is_some_and(|word| word.ends_with(['>', '<']))
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if std::mem::take(&mut self.target) {
            return;
        }
        let bare = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
        if bare.starts_with(['>', '<']) {
            self.target = bare.trim_start_matches(['>', '<', '|', '&']).is_empty();
        } else {
            self.words.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.target = false;
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_into_its_commands_without_quotes_and_redirections() {
        let split = |line: &str| commands(line).iter().map(|words| words.join("_")).collect::<Vec<_>>();
        for (line, words) in [
            ("cd / && run-parts --report /etc/cron.hourly", &["cd_/", "run-parts_--report_/etc/cron.hourly"][..]),
            ("a 'b c' \"d\\\"e\" >/dev/null 2>&1; f &", &["a_b c_d\"e", "f"]),
            ("a >> log 2> err < in | b &> all", &["a", "b"]),
            ("(a; b)", &["a", "b"]),
            ("a ''", &["a_"]),
            ("'unclosed", &["unclosed"]),
            ("", &[]),
        ] {
            assert_eq!(split(line), words, "{line}");
        }
    }
}
