//! A line of a crontab as cron hands it to a shell, with its `%` and its input: as the command of a job, and as the job's name, made
//! from the command alone, so that the same crontab always has the same names.
//!
//! The words of a line are told apart as far as a name needs them, quotes taken off. No shell: nothing is expanded or run, and a name
//! is all that is made of what was understood.

use std::collections::{BTreeMap, BTreeSet};

use crate::cli::import::document;
use crate::job::JobName;

/// The longest name that leaves room for a number.
const LONGEST: usize = 48;

/// How often a command inside of a command is looked into.
const DEEPEST: usize = 4;

/// Commands that only prepare the one that matters.
const PREPARING: [&str; 17] = [
    "cd", "test", "[", "[[", "sleep", "export", ".", "source", "umask", ":", "true", "false", "set", "unset", "mkdir",
    "ulimit", "fi",
];

/// Words that stand in front of a command.
const BEFORE: [&str; 31] = [
    "if", "then", "else", "elif", "while", "until", "do", "!", "{", "}", "done", "exec", "command", "nohup", "time",
    "setsid", "chronic", "nice", "ionice", "env", "sudo", "timeout", "flock", "cronlock", "setlock", "lockrun",
    "stdbuf", "cronic", "solo", "eval", "chrt",
];

/// Of these the first word that is no flag is a file, not the command.
const TAKES_A_FILE: [&str; 4] = ["flock", "setlock", "lockrun", "solo"];

/// Flags that take the next word.
const TAKES_A_WORD: [&str; 9] = ["-u", "-g", "-n", "-c", "-w", "-E", "-p", "-s", "-k"];

const INTERPRETERS: [&str; 13] =
    ["sh", "bash", "dash", "ksh", "zsh", "python", "perl", "php", "ruby", "node", "java", "nodejs", "lua"];

/// Programs that say little without what they are told to do.
const WITH_ARGUMENT: [&str; 15] = [
    "run-parts",
    "make",
    "rake",
    "artisan",
    "systemctl",
    "service",
    "docker",
    "git",
    "npm",
    "yarn",
    "kubectl",
    "aws",
    "console",
    "manage",
    "drush",
];

const EXTENSIONS: [&str; 10] = [".sh", ".py", ".pl", ".php", ".rb", ".js", ".jar", ".bash", ".cron", ".cgi"];

/// Gives out names.
#[derive(Default)]
pub(super) struct Names {
    taken: BTreeSet<String>,
    /// Where the search for a number of this name ended: the numbers below are taken. A crontab may have one command in
    /// every line.
    numbered: BTreeMap<String, u32>,
}

impl Names {
    /// A name that nobody has yet: the command's own, with a number from the second one on.
    pub(super) fn take(&mut self, command: &str) -> String {
        let wanted = job_of_guard(command).unwrap_or_else(|| slug(&of(command, 0)));
        if self.taken.insert(wanted.clone()) {
            return wanted;
        }
        let next = self.numbered.entry(wanted.clone()).or_insert(2);
        loop {
            let name = format!("{wanted}-{next}");
            *next = next.saturating_add(1);
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// `cronward exec --job NAME`: the job has its name already.
fn job_of_guard(command: &str) -> Option<String> {
    let commands = commands(command);
    let words = commands.iter().find(|words| words.iter().any(|word| base(word) == "cronward"))?;
    let inline = words.iter().find_map(|word| word.strip_prefix("--job="));
    let next = words.iter().position(|word| word == "--job").and_then(|at| words.get(at + 1));
    let name = inline.or(next.map(String::as_str))?;
    JobName::new(name).is_ok().then(|| name.to_owned())
}

/// What a command does, in a word or two.
fn of(line: &str, depth: usize) -> String {
    let commands = commands(line);
    let bare: Vec<&[String]> =
        commands.iter().map(|words| unwrapped(words)).filter(|words| !words.is_empty()).collect();
    let matters = |words: &&&[String]| {
        let sleeps =
            words.iter().any(|word| word.contains("sleep")) && words.iter().any(|word| word == "-e" || word == "-c");
        words.first().is_some_and(|program| !PREPARING.contains(&base(program))) && !sleeps
    };
    let Some(words) = bare.iter().find(matters).or_else(|| bare.first()) else { return String::new() };
    named(words, depth)
}

/// The command behind the words that stand in front of it.
fn unwrapped(mut words: &[String]) -> &[String] {
    let mut wrapper = "";
    while let Some((word, rest)) = words.split_first() {
        let program = base(word);
        if BEFORE.contains(&program) {
            wrapper = program;
        } else if !wrapper.is_empty() && word == "-c" {
            // `flock FILE -c 'command'`: what follows is the command.
            return rest;
        } else if !wrapper.is_empty() && TAKES_A_WORD.contains(&&**word) && wrapper != "flock" {
            words = rest.get(1..).unwrap_or(&[]);
            continue;
        } else if TAKES_A_FILE.contains(&wrapper) && !word.starts_with('-') && !is_number(word) {
            wrapper = "file";
        } else if !(is_assignment(word) || !wrapper.is_empty() && (word.starts_with('-') || is_number(word))) {
            return words;
        }
        words = rest;
    }
    words
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit()) && word.trim_end_matches(['s', 'm', 'h', 'd']).parse::<f64>().is_ok()
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A name for a simple command.
fn named(words: &[String], depth: usize) -> String {
    let Some((program, arguments)) = words.split_first() else { return String::new() };
    if program.contains(' ') && depth < DEEPEST {
        return of(program, depth + 1);
    }
    let short = stem(program);
    let interpreter = INTERPRETERS.contains(&short.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'));
    let inner = arguments.iter().position(|word| word == "-c" || word == "-lc").and_then(|at| arguments.get(at + 1));
    if let Some(inner) = inner.filter(|_| depth < DEEPEST && (interpreter || matches!(short, "su" | "runuser"))) {
        return of(inner, depth + 1);
    }
    let mut plain = arguments.iter().filter(|word| !word.starts_with('-'));
    let inline = arguments.iter().any(|word| matches!(&**word, "-e" | "-c" | "-r"));
    match plain.next() {
        Some(first) if interpreter && !inline => {
            let rest: Vec<String> = std::iter::once(first).chain(plain).cloned().collect();
            if depth < DEEPEST { named(&rest, depth + 1) } else { stem(first).to_owned() }
        }
        Some(first) if WITH_ARGUMENT.contains(&short) => format!("{short}-{}", stem(first)),
        _ => short.to_owned(),
    }
}

/// A path's last part.
fn base(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or("")
}

/// The same without its extension.
fn stem(path: &str) -> &str {
    let base = base(path);
    let stem = EXTENSIONS.iter().find_map(|extension| base.strip_suffix(extension));
    stem.filter(|stem| !stem.is_empty()).unwrap_or(base)
}

/// The nearest name that is allowed.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars().flat_map(char::to_lowercase).take(LONGEST) {
        let c = if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' };
        if c != '-' || !slug.ends_with('-') {
            slug.push(c);
        }
    }
    let slug = slug.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    if slug.is_empty() { "job".to_owned() } else { slug.to_owned() }
}

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
    use proptest::prelude::*;

    #[test]
    fn a_job_is_named_after_the_command_that_matters() {
        for (command, name) in [
            ("cd / && run-parts --report /etc/cron.hourly", "run-parts-cron.hourly"),
            ("test -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.daily; }", "run-parts-cron.daily"),
            (
                "[ -x /usr/lib/php/sessionclean ] && if [ ! -d /run/systemd ]; then /usr/lib/php/sessionclean; fi",
                "sessionclean",
            ),
            ("test -e /run/systemd/system || SERVICE_MODE=1 /sbin/e2scrub_all -A -r", "e2scrub_all"),
            ("test -x /usr/bin/certbot && perl -e 'sleep int(rand(43200))' && certbot -q renew", "certbot"),
            ("/usr/bin/python3 /srv/app/manage.py clearsessions", "manage-clearsessions"),
            ("cd /srv/www && php artisan schedule:run >> /dev/null 2>&1", "artisan-schedule-run"),
            ("nice -n 19 ionice -c3 /opt/Backup.sh --full", "backup"),
            ("flock -n /tmp/x.lock /usr/local/bin/push", "push"),
            ("flock -w 10 /tmp/x.lock -c 'cd /srv && ./pull.sh'", "pull"),
            ("timeout 300 sudo -u app /srv/app/bin/sync", "sync"),
            ("bash -lc 'bundle exec rake db:cleanup'", "bundle"),
            ("su - www-data -c '/srv/poll.py'", "poll"),
            ("cronward exec --job billing --slot hour -- /usr/local/bin/bill", "billing"),
            ("echo hello", "echo"),
            ("sleep 5", "sleep"),
            ("日本", "job"),
            (">x", "job"),
        ] {
            assert_eq!(Names::default().take(command), name, "{command}");
        }
    }

    #[test]
    fn a_second_one_has_a_number() {
        let mut names = Names::default();
        let given: Vec<String> = ["a", "a", "a-2", "a"].iter().map(|command| names.take(command)).collect();
        assert_eq!(given, ["a", "a-2", "a-2-2", "a-3"]);
    }

    proptest! {
        #[test]
        fn every_command_has_a_name_that_is_allowed(command in "[ -~é\t]{0,120}") {
            let mut names = Names::default();
            for _ in 0..12 {
                let name = names.take(&command);
                prop_assert!(JobName::new(&name).is_ok(), "{}", name);
            }
        }
    }

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
