//! Long inputs: a parser takes time and memory in proportion to them, or refuses them. Were one quadratic, these would
//! take hours; the limits of time are what a busy machine needs for the work without any optimisation, and much more.
//! Those of memory are in `memory`.

use std::time::Duration;

use cronward::fuzzing;
use rustix::time::{ClockId, clock_gettime};

use crate::memory::bounded;

/// Bytes of most of them.
const LENGTH: usize = 300_000;

/// What one of them may take of a processor: how busy the machine is besides does not count.
const LIMIT: Duration = Duration::from_secs(60);

/// What this thread has had of a processor so far.
fn computed() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec.try_into().unwrap(), spent.tv_nsec.try_into().unwrap())
}

#[track_caller]
fn in_bounds(what: &str, body: fn(&[u8]) -> bool, bytes: &[u8]) {
    let begun = computed();
    bounded(what, body, bytes);
    let took = computed() - begun;
    assert!(took < LIMIT, "{what}: {} bytes took {took:?}", bytes.len());
}

/// A text repeated up to that length.
fn long(text: &str) -> String {
    text.repeat(LENGTH / text.len())
}

#[test]
fn a_long_file_is_read_in_time_whatever_is_wrong_in_it() {
    let keys: String = (0..10_000).map(|n| format!("k{n} = 1\n")).collect();
    let on_one_line: String = (0..10_000).map(|n| format!("k{n} = 1, ")).collect();
    let wrong: String =
        (0..8_000).map(|n| format!("[jobs.j{n}]\nschedule = 1\ncommand = [\"{{x}}\"]\nz = 60s\n")).collect();
    let jobs: String =
        (0..150).map(|n| format!("[jobs.j{n}]\nschedule = \"{} * * * *\"\ncommand = [\"true\"]\n", n % 60)).collect();
    for (what, text) in [
        ("unknown keys", keys.clone()),
        ("unknown keys and a syntax error", keys + "x = \n"),
        ("keys on one line", format!("node = {{ {on_one_line} a = 1 }}")),
        ("keys on one line and a syntax error", format!("x = 60s\nnode = {{ {on_one_line} a = 1 }}")),
        ("a syntax error on the long line", format!("node = {{ {on_one_line} a = }}")),
        ("jobs that are all wrong", wrong),
        ("jobs", jobs),
        ("the same header", long("[jobs.a]\n")),
        ("the same key", long("a = 1\n")),
        ("no TOML", long("= ")),
        ("one long line", long("x")),
        ("one long string", format!("a = \"{}\"", long("x"))),
        ("references", format!("[store]\nurl = \"{}\"", long("${A}$B"))),
        ("urls", format!("[store]\nurl = \"{}\"", long("://"))),
        ("braces", format!("[jobs.a]\nschedule = \"@daily\"\ncommand = [\"{}\"]", long("{{x}"))),
        ("nested lists", format!("a = {}", long("["))),
        ("nested tables", format!("a = {}", long("{a="))),
        ("nested headers", format!("[{}a]", long("a."))),
        ("quotes", long("\"\"\"")),
        ("NUL", long("\0")),
        ("not ASCII", long("\u{202e}")),
    ] {
        in_bounds(what, fuzzing::config, text.as_bytes());
    }
    in_bounds("not UTF-8", fuzzing::config, &vec![0xff; LENGTH]);
}

#[test]
fn short_words_that_are_long_are_refused_in_time() {
    for text in [long("*"), long("1,"), long(" "), long("{job}"), long("{"), long("2026-")] {
        in_bounds("cron", fuzzing::cron, text.as_bytes());
        in_bounds("slot key", fuzzing::slot_key, text.as_bytes());
        in_bounds("placeholders", fuzzing::placeholders, text.as_bytes());
    }
}

#[test]
fn an_expression_that_hardly_ever_ticks_is_searched_in_time() {
    for text in
        ["0 0 29 2 +SUN", "0 0 29 2 +MON#5", "59 59 23 31 12 +SAT", "0 0 29 2 +WEDL", "0 0 30 2 *", "0 0 31 2,4,6 *"]
    {
        for zone in 0..6_u8 {
            in_bounds(text, fuzzing::cron, &[&[zone], text.as_bytes()].concat());
        }
    }
}

#[test]
fn a_long_answer_is_read_in_time() {
    let item = "$9\r\naudit.123\r\n$2\r\n{}\r\n";
    let array = |count: usize, items: &str| format!("*{count}\r\n{}", items.repeat(count));
    for text in [
        array(30_000, ":1\r\n"),
        array(15_000, item),
        format!("*4\r\n_\r\n:1\r\n_\r\n{}", array(15_000, item)),
        long("*1\r\n"),
        format!("*{}\r\n{}", 7_000, "*3\r\n:0\r\n:16383\r\n*2\r\n$0\r\n\r\n:1\r\n".repeat(7_000)),
        format!("-MOVED 1 {}:1\r\n", long("x")),
        "*9223372036854775807\r\n".to_owned(),
        "*2147483647\r\n:1\r\n".to_owned(),
        "%2147483647\r\n:1\r\n".to_owned(),
        "$2147483647\r\nx".to_owned(),
    ] {
        in_bounds("an answer", fuzzing::redis_reply, text.as_bytes());
    }
    for text in [long("["), long("{\"a\":"), format!("{{\"name\":\"{}\"}}", long("x"))] {
        in_bounds("a record", fuzzing::stored_record, text.as_bytes());
    }
    let note = r#"{"at_ms":1,"what":"early"},"#;
    let page = |count| {
        let notes = note.repeat(count);
        format!(r#"{{"last_ms":1,"id":"p","node":"n","notes":[{}]}}"#, notes.trim_end_matches(','))
    };
    let pages = format!("{},", page(1)).repeat(3_000);
    let together = format!(r#"{{"kept_from_ms":1,"pages":[{}]}}"#, pages.trim_end_matches(','));
    let alone = format!(r#"{{"kept_from_ms":1,"page":{}}}"#, page(8_000));
    for text in [together, alone] {
        in_bounds("notes", fuzzing::document, text.as_bytes());
        in_bounds("notes in a node", fuzzing::zookeeper_node, format!("/x\n{text}").as_bytes());
    }
    let entry = |n: usize| {
        let token = format!("{n:032x}");
        format!(
            r#"{{"token":"{token}","owner":"{token}","place":{n},"weight":1,"of":9999,"until_ms":1795269660000,"node":"n","instance":"{token}"}}"#
        )
    };
    let entries: Vec<String> = (1..1_500).map(entry).collect();
    let spent: Vec<String> = (0..4_500).map(|n| format!(r#""{n:032x}":{{"until_ms":1795269660000}}"#)).collect();
    for text in [
        format!(r#"{{"last":1,"entries":[{}]}}"#, entries.join(",")),
        format!(r#"{{"last":1,"spent":{{{}}}}}"#, spent.join(",")),
    ] {
        in_bounds("a lock", fuzzing::lock_document, text.as_bytes());
    }
    // The length of what follows, in the form of protobuf: five bytes that say four gigabytes.
    for start in [&b"\x12"[..], b"\x5a", b"\x12\x05\x2a"] {
        in_bounds("a length", fuzzing::etcd_reply, &[start, b"\xff\xff\xff\xff\x0f"].concat());
    }
}

/// Settings and entries in turn: each entry has all settings above it.
fn settings_in_turn(count: usize) -> String {
    (0..count).map(|n| format!("A{n}=1\n* * * * * j{n}\n")).collect()
}

#[test]
fn a_long_crontab_is_imported_in_time_whatever_stands_in_it() {
    for (what, text) in [
        ("settings in turn", settings_in_turn(5_000)),
        ("one long setting", format!("A={}\n{}", "x".repeat(50_000), "* * * * * j\n".repeat(1_000))),
        ("one command", "* * * * * j\n".repeat(5_000)),
        ("comments", long("#\n")),
        ("line ends", long("\n")),
        ("refused", long("@reboot x\n")),
        ("one line", format!("* * * * * {}", long("x% "))),
        ("percent signs", format!("* * * * * cat{}", long("%"))),
        ("lists", format!("{} * * * * x\n", long("1,"))),
        ("no text", "\u{202e}\n".repeat(10_000)),
    ] {
        in_bounds(what, fuzzing::crontab, text.as_bytes());
    }
}

#[test]
fn a_long_file_of_variables_is_read_in_time() {
    for text in [long("A=1\n"), format!("A=\"{}\"", long("\\$")), long("'"), long("="), long("\r")] {
        in_bounds("an env_file", fuzzing::env_file, text.as_bytes());
    }
}

#[test]
fn a_long_journal_is_judged_in_time() {
    let slot = r#""job":"a","slot":"2026-11-21T14Z","slot_end":"2026-11-21T15:00:00Z""#;
    let line = |n: usize, rest: &str| {
        let (m, s) = (n / 60 % 60, n % 60);
        format!("{{\"at\":\"2026-11-21T14:{m:02}:{s:02}Z\",\"node\":\"n{}\",\"instance\":\"i{n}\",{rest}}}\n", n % 500)
    };
    let started = format!(r#"{slot},"event":"run_started","attempt":1,"fence":1,"trigger":"retry","guarded":true"#);
    let ended = r#"{"at":"2026-11-21T16:00:00Z","node":"z","instance":"z","event":"stopped"}"#;
    let lines = |count: usize, rest: &str| (0..count).map(|n| line(n, rest)).collect::<String>() + ended + "\n";
    let fault = |n: usize| {
        format!(
            "{{\"at\":\"2026-11-21T14:{:02}:{:02}Z\",\"kind\":\"stop\",\"target\":\"n{n}\"}}\n",
            n / 60 % 60,
            n % 60
        )
    };
    let faults: String = (0..3_000).map(fault).collect();
    let missed = format!(r#"{slot},"event":"closed","verdict":"missed""#);
    for (what, text) in [
        ("starts", lines(3_000, r#""event":"started","jobs":1"#)),
        ("runs of one slot", lines(600, &started)),
        ("outages", lines(2_000, r#""event":"store_lost","error":"x""#)),
        ("torn lines", long("{\n")),
        ("one line", long("{\"a\":")),
        ("faults", lines(20, &missed) + "--- faults\n" + &faults),
    ] {
        in_bounds(what, fuzzing::journal, text.as_bytes());
    }
}
