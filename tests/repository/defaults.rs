//! The defaults of docs/jobs-toml.md are those of the program: a file that writes one out means what the same file means without it.

use cronward::config::{Config, Environment, parse};
use cronward::job::JobName;

/// One row of the page's tables.
struct Row {
    section: String,
    key: String,
    default: String,
    meaning: String,
}

fn read(path: &str) -> String {
    std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The cells of each row of a text's tables, without the row that names the columns.
fn cells(text: &str) -> Vec<[String; 3]> {
    let row = |line: &str| {
        <[String; 3]>::try_from(
            line.split(" | ").map(|cell| cell.trim_matches(['|', ' ']).to_owned()).collect::<Vec<_>>(),
        )
        .ok()
    };
    text.lines().filter(|line| line.starts_with("| `")).filter_map(row).collect()
}

fn rows() -> Vec<Row> {
    let page = read("docs/jobs-toml.md");
    let sections = page.split("\n## ").skip(1).filter_map(|section| section.split_once('\n'));
    let of_section = |(heading, text): (&str, &str)| {
        let section = heading.to_owned();
        let row = move |[key, default, meaning]: [String; 3]| Row {
            section: section.clone(),
            key: bare(&key),
            default,
            meaning,
        };
        cells(text).into_iter().map(row).collect::<Vec<_>>()
    };
    sections.flat_map(of_section).collect()
}

fn bare(cell: &str) -> String {
    cell.trim_matches('`').to_owned()
}

/// What stands between backticks, if that is all there is.
fn literal(cell: &str) -> Option<&str> {
    cell.strip_prefix('`')?.strip_suffix('`').filter(|text| !text.contains('`'))
}

/// The lines that a section needs before a key of it can be tried.
fn needed(row: &Row) -> Vec<(&'static str, &'static str)> {
    let mail = vec![
        ("type", "\"email\""),
        ("smtp", "\"127.0.0.1:25\""),
        ("from", "\"a@b.example\""),
        ("to", "[\"c@d.example\"]"),
    ];
    match (row.section.as_str(), row.key.as_str()) {
        ("[http.tls]", _) => vec![("cert_file", "\"/c\""), ("key_file", "\"/k\"")],
        ("[http.auth.proxy]", "role_header") => vec![("from", "[\"10.0.0.5/32\"]")],
        ("[http.auth.proxy]", _) => vec![("from", "[\"10.0.0.5/32\"]"), ("groups", "{ ops = \"operator\" }")],
        ("[notify.NAME]", "smtp" | "tls" | "user" | "from" | "to") => mail,
        ("[notify.NAME]", "command") => vec![("type", "\"exec\""), ("command", "[\"true\"]")],
        ("[notify.NAME]", _) => vec![("type", "\"webhook\""), ("url", "\"http://127.0.0.1/\"")],
        ("[defaults] and [jobs.NAME]", _) => vec![("schedule", "\"0 * * * *\""), ("command", "[\"true\"]")],
        _ => Vec::new(),
    }
}

/// A file whose section has what it needs, but not this key, and this line instead.
fn file(row: &Row, line: &str) -> String {
    let needed =
        needed(row).into_iter().filter(|(key, _)| *key != row.key).map(|(key, value)| format!("{key} = {value}\n"));
    let heading = match row.section.as_str() {
        "[notify.NAME]" => "[notify.a]",
        "[defaults] and [jobs.NAME]" => "[jobs.a]",
        section => section,
    };
    format!("{heading}\n{}{line}\n", needed.collect::<String>())
}

/// What a file means, on a host of this name.
fn meaning(text: &str, host: Option<&str>) -> Result<Config, String> {
    let nowhere = Environment::new("2026-11-21T12:00:00Z".parse().unwrap());
    let env = match host {
        Some(host) => nowhere.with_hostname(host),
        None => nowhere,
    };
    parse("jobs.toml", text.to_owned(), &env).map(|(config, _)| config).map_err(|report| report.to_string())
}

/// The part of it that a section is read into.
fn shown(config: &Config, section: &str) -> String {
    match section {
        "[node]" => format!("{:#?}", config.node),
        "[store]" => format!("{:#?}", config.store),
        "[notify.NAME]" => format!("{:#?}", config.notify),
        "[defaults] and [jobs.NAME]" => format!("{:#?}", config.jobs[&JobName::new("a").unwrap()]),
        _ => format!("{:#?}", config.http),
    }
}

/// Whether there is nothing where the key would be, or where it would show.
fn is_none(row: &Row, config: &Config) -> bool {
    let shown = shown(config, &row.section);
    let is_empty = |field: &str| {
        let mut lines = shown.lines().map(str::trim).filter_map(|line| line.strip_prefix(field)?.strip_prefix(": "));
        lines.any(|value| ["None,", "[],", "{},"].contains(&value))
    };
    match row.key.as_str() {
        "auth" => is_empty("tokens_file") && is_empty("proxy"),
        "role_header" | "groups" => shown.contains("roles: Nowhere,"),
        key => is_empty(key),
    }
}

/// What the page says of a default, as the line that writes it out.
fn written_out(row: &Row) -> Option<String> {
    let value = match row.default.as_str() {
        "STARTTLS" => "\"starttls\"".to_owned(),
        "the first five" => {
            let named: Vec<&str> = row.meaning.split('`').skip(1).step_by(2).take(5).collect();
            format!("{named:?}")
        }
        default => literal(default)?.to_owned(),
    };
    Some(format!("{} = {value}", row.key))
}

/// Values of which each key takes one, so that a default that is written out is known to be read.
const OTHERS: &[&str] = &[
    "77",
    "\"7s\"",
    "true",
    "false",
    "[7]",
    "\"77KiB\"",
    "\"x\"",
    "\"/x\"",
    "\"memory:\"",
    "\"127.0.0.1:7\"",
    "\"none\"",
    "\"day\"",
    "\"zh\"",
    "\"kill\"",
    "\"run\"",
    "\"allow\"",
    "\"exponential\"",
    "\"process\"",
    "\"Europe/Berlin\"",
    "[\"late\"]",
    "\"5h\"",
];

#[test]
fn every_documented_default_is_what_a_file_means_that_leaves_the_key_out() {
    let (mut tried, mut wrong) = (0, Vec::new());
    for row in rows() {
        let Some(line) = written_out(&row) else { continue };
        tried += 1;
        for host in [None, Some("web-7")] {
            let (without, with) = (meaning(&file(&row, ""), host), meaning(&file(&row, &line), host));
            if with.is_err() || with != without {
                wrong.push(format!(
                    "{} {line}: {}",
                    row.section,
                    with.err().unwrap_or_else(|| "is not the default".to_owned())
                ));
            }
        }
        let without = meaning(&file(&row, ""), None);
        let is_read = |other: &&str| {
            meaning(&file(&row, &format!("{} = {other}", row.key)), None)
                .is_ok_and(|with| Ok(&with) != without.as_ref())
        };
        if !OTHERS.iter().any(is_read) {
            wrong.push(format!("{} {}: no value makes a difference", row.section, row.key));
        }
    }
    assert!(wrong.is_empty(), "docs/jobs-toml.md:\n{}", wrong.join("\n"));
    assert!(tried > 30, "only {tried} defaults found");
}

#[test]
fn a_key_that_is_documented_as_none_or_required_is_that() {
    let (mut none, mut required, mut wrong) = (0, 0, Vec::new());
    for row in rows().into_iter().filter(|row| written_out(row).is_none()) {
        let without = meaning(&file(&row, ""), None);
        let is_so = match row.default.as_str() {
            "none" | "the daemon's" | "the user's" => {
                none += 1;
                // One of these two has to be there.
                let is_one_of_two = row.section == "[notify.NAME]" && ["url", "url_file"].contains(&row.key.as_str());
                is_one_of_two || without.is_ok_and(|config| is_none(&row, &config))
            }
            required_for if required_for.starts_with("required") => {
                required += 1;
                without.is_err_and(|report| report.contains(&row.key))
            }
            _ => false,
        };
        if !is_so {
            wrong.push(format!("{} {}: {}", row.section, row.key, row.default));
        }
    }
    assert!(wrong.is_empty(), "docs/jobs-toml.md:\n{}", wrong.join("\n"));
    assert!(none > 25 && required > 8, "only {none} without a default and {required} required");
}

/// `cronward init` writes it, and its comment says that these values are the built-in ones.
#[test]
fn the_defaults_of_the_file_that_init_writes_are_the_built_in_ones() {
    let text = read("jobs.toml");
    let section = text.split("[defaults]\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    let lines: Vec<&str> =
        section.lines().map(|line| line.trim_start_matches("# ")).filter(|line| line.contains(" = ")).collect();
    assert!(lines.len() > 15, "only {lines:?}");
    let job = "[jobs.a]\nschedule = \"0 * * * *\"\ncommand = [\"true\"]\n";
    for line in lines {
        assert_eq!(meaning(&format!("[defaults]\n{line}\n{job}"), None), meaning(job, None), "{line}");
    }
}

/// Those that docs/operations.md gives as figures or words, with what one has to know to choose others.
#[test]
fn the_page_of_operations_has_the_same_defaults() {
    let page = read("docs/operations.md");
    let table = page.split("\n## What to set\n").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let same = |cell: &str| cell.split(';').next().unwrap_or_default().replace([' ', '`', '"'], "");
    let documented = rows();
    let mut compared = 0;
    for [key, default, _] in cells(table) {
        // "The slot's end" and the like are words for people.
        if default.starts_with(|c: char| c.is_ascii_digit() || c == '`') {
            let row = documented.iter().find(|row| row.key == bare(&key)).unwrap_or_else(|| panic!("{key}"));
            assert_eq!(same(&default), same(&row.default), "{key}");
            compared += 1;
        }
    }
    assert!(compared > 8, "only {compared} rows found");
}
