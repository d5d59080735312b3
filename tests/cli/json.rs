//! `docs/json.md` is the schema of `--json`: its tables are what the commands really write, field by field and type by type.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::filled::Filled;
use crate::program::{Ended, Place};

/// The tables by their headings: each field with the words of its type.
type Schema = BTreeMap<String, BTreeMap<String, Vec<String>>>;

fn schema() -> Schema {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/json.md")).unwrap();
    let sections = page.split("\n## ").skip(1).map(|section| {
        let (name, body) = section.split_once('\n').unwrap();
        let rows = body.lines().filter_map(|line| {
            let (field, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
            let types = rest.split(" | ").next()?.split(" or ").map(str::to_owned).collect();
            Some((field.to_owned(), types))
        });
        (name.to_owned(), rows.collect())
    });
    sections.collect()
}

/// Holds values against the table of a heading. What the table promises has to be seen in one of them at least.
struct Check<'a> {
    schema: &'a Schema,
    seen: BTreeSet<(String, String)>,
    wrong: Vec<String>,
}

impl Check<'_> {
    fn object(&mut self, section: &str, path: &str, value: &Value) {
        let prefix = if path.is_empty() { String::new() } else { format!("{path}.") };
        let fields = value.as_object().unwrap_or_else(|| panic!("{section} {path}: {value}"));
        let direct =
            |field: &&String| field.strip_prefix(&prefix).is_some_and(|rest| !rest.is_empty() && !rest.contains('.'));
        let promised = &self.schema[section];
        for field in promised.keys().filter(direct).map(|field| field[prefix.len()..].trim_end_matches("[]").to_owned())
        {
            if field != "*" && !fields.contains_key(&field) {
                self.wrong.push(format!("{section}: {prefix}{field} is not written"));
            }
        }
        let any = promised.keys().any(|field| field.starts_with(&format!("{prefix}*")));
        for (field, value) in fields {
            let field = if any { "*" } else { field.as_str() };
            self.field(section, &format!("{prefix}{field}"), value);
        }
    }

    fn field(&mut self, section: &str, path: &str, value: &Value) {
        if let Value::Array(items) = value {
            let path = format!("{path}[]");
            self.seen.insert((section.to_owned(), path.clone()));
            return items.iter().for_each(|item| self.typed(section, &path, item));
        }
        self.typed(section, path, value);
    }

    fn typed(&mut self, section: &str, path: &str, value: &Value) {
        self.seen.insert((section.to_owned(), path.to_owned()));
        if path.ends_with('*') {
            return self.object(section, path, value);
        }
        let Some(types) = self.schema[section].get(path) else {
            return self.wrong.push(format!("{section}: {path} is not in the table"));
        };
        if value.is_object() && types.iter().any(|word| word == "object") {
            return self.object(section, path, value);
        }
        let other = types.iter().find(|word| self.schema.contains_key(*word)).cloned();
        match other.filter(|_| value.is_object()) {
            Some(other) => self.object(&other, "", value),
            None if types.iter().any(|word| fits(word, value)) => {}
            None => self.wrong.push(format!("{section}: {path} is {value} and not {types:?}")),
        }
    }
}

fn fits(word: &str, value: &Value) -> bool {
    match word {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        "map" => value.is_object(),
        "time" => {
            value.as_str().is_some_and(|text| text.ends_with('Z') && chrono::DateTime::parse_from_rfc3339(text).is_ok())
        }
        _ => false,
    }
}

fn read(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

/// Values of each heading, as the commands write them.
fn samples() -> Vec<(&'static str, Value)> {
    let store = Filled::new();
    let deed = read(&store.run(&["reset", "mail", "--yes", "--json"]));
    assert_eq!(store.run(&["pause", "quiet", "--yes", "--until", "2h"]).code, 0);
    store.miss("mail");
    let many = |section, value: Value| {
        value.as_array().unwrap().iter().map(|item| (section, item.clone())).collect::<Vec<_>>()
    };
    let mut samples = many("slot", read(&store.run(&["attempts", "--all", "--json"])));
    samples.extend(many("job", read(&store.run(&["jobs", "--json"]))));
    samples.push(("slot", read(&store.run(&["show", "push", "--json"]))));
    samples.push(("explanation", read(&store.run(&["why", "mail", "--json"]))));
    store.hear_of("a");
    samples.extend(many("node", read(&store.run(&["nodes", "--json"]))));
    samples.push(("run", read(&store.run(&["logs", "mail", "--json"]))));
    samples.extend(many("tick", read(&store.run(&["next", "--json"]))));
    samples.push(("migration", read(&store.run(&["migrate", "--json"]))));
    samples.push(("change", deed));
    samples.push(("diagnosis", read(&store.run(&["doctor", "--json"]))));
    samples.push(("diagnosis", read(&Place::new().run(&["doctor", "--json", "--store", "memory:"]))));
    let wrong = Place::with_jobs("[jobs.a]\nschedule = \"0 * * * *\"\ncomand = \"true\"\n");
    samples.extend(many("finding", read(&wrong.run(&["check", "--json"]))));
    samples.extend(reports());
    let exec = ["exec", "--store", "sqlite:s.db", "--job", "a", "--report", "r.json", "--", "/bin/true"];
    assert_eq!(wrong.run(&exec).code, 0);
    let account = std::fs::read_to_string(wrong.path().join("r.json")).unwrap();
    samples.push(("run report", serde_json::from_str(&account).unwrap()));
    let (change, held) = lock();
    samples.extend([("change", change), ("lock", held)]);
    samples
}

/// That an operator has taken a lock from its holder, and the lock that is held again.
fn lock() -> (Value, Value) {
    let program = env!("CARGO_BIN_EXE_cronward");
    let script = "\"$0\" unlock --lock x --yes --json --store sqlite:l.db > unlocked && \
                  exec \"$0\" lock x --store sqlite:l.db -- \"$0\" locks x --json --store sqlite:l.db";
    let outer =
        ["lock", "x", "--on-lost", "continue", "--store", "sqlite:l.db", "--", "/bin/sh", "-c", script, program];
    let place = Place::new();
    let held = read(&place.run(&outer));
    let unlocked = std::fs::read_to_string(place.path().join("unlocked")).unwrap();
    (serde_json::from_str(&unlocked).unwrap(), held)
}

/// One slot of node a, done by one run.
const WELL: &str = include_str!("verify/well.jsonl");
/// The same slot, done by another node at the same time.
const BROKEN: &str = include_str!("verify/broken.jsonl");

/// A slot whose first attempt failed, and one that was begun before its start; the last line is cut.
fn eventful() -> String {
    let failed = WELL
        .replace("\"success\",\"exit_code\":0", "\"failure\",\"exit_code\":1")
        .replace("\"success\"", "\"failure\"");
    let of_slot: String = WELL.lines().skip(2).map(|line| format!("{line}\n")).collect();
    let second = of_slot.replace("14:00:01.000Z", "14:00:16.000Z").replace("14:00:05.000Z", "14:00:20.000Z");
    let second = second
        .replace("\"attempt\":1,\"used\":1", "\"attempt\":2,\"used\":2")
        .replace("\"attempt\":1", "\"attempt\":2");
    let second = second.replace("600001", "600002").replace("00000001", "00000002");
    let early =
        of_slot.replace("21T14Z", "21T15Z").replace("21T15:00:00Z", "21T16:00:00Z").replace("00000001", "00000003");
    // Another node is there and could have tried again.
    let other = |second: u32, event: &str| {
        format!("{{\"at\":\"2026-11-21T14:00:{second:02}.000Z\",\"node\":\"b\",\"instance\":\"b1\",{event}}}\n")
    };
    let (up, reached) = (other(0, "\"event\":\"started\",\"jobs\":1"), other(0, "\"event\":\"store_reached\""));
    let gone = other(30, "\"event\":\"stopped\"");
    format!("{up}{reached}{gone}{failed}{second}{early}{{\"at\"")
}

/// What the checker says of journals.
fn reports() -> Vec<(&'static str, Value)> {
    let place = Place::new();
    for (name, text) in [("well", WELL.to_owned()), ("broken", BROKEN.to_owned()), ("eventful", eventful())] {
        std::fs::write(place.path().join(name), text).unwrap();
    }
    let report = |files: &[&str]| ("report", read(&place.run(&[&["verify", "--json"], files].concat())));
    vec![report(&["well"]), report(&["well", "broken"]), report(&["eventful"])]
}

#[test]
fn the_tables_are_what_is_written() {
    let schema = schema();
    let mut check = Check { schema: &schema, seen: BTreeSet::new(), wrong: Vec::new() };
    for (section, value) in samples() {
        check.object(section, "", &value);
    }
    let promised =
        schema.iter().flat_map(|(section, rows)| rows.keys().map(move |field| (section.clone(), field.clone())));
    let unseen: Vec<_> = promised.filter(|row| !check.seen.contains(row)).collect();
    assert!(check.wrong.is_empty(), "{}", check.wrong.join("\n"));
    assert!(unseen.is_empty(), "no sample has: {unseen:?}");
}

#[test]
fn no_run_yet_is_null() {
    assert_eq!(read(&Filled::new().run(&["logs", "quiet", "--json"])), Value::Null);
}
