//! Whatever is imported can be read again, and nothing is lost on the way.

use proptest::prelude::*;

use chrono::{DateTime, Utc};

use super::document;
use super::line::Names;
use super::table::{self, Source};
use crate::cli::import::document::{Item, ZoneSource};
use crate::config::{self, Config, Environment};
use crate::zone::Zone;

fn berlin() -> (Zone, ZoneSource) {
    ("Europe/Berlin".parse().unwrap(), ZoneSource::Flag)
}

fn items(text: &[u8], system: bool) -> Vec<Item> {
    table::read(&Source { file: "c", text, system, zone: berlin() }, &mut Names::default())
}

fn import(text: &str) -> String {
    document::write(&items(text.as_bytes(), false), berlin(), None)
}

fn read_again(document: &str) -> Config {
    let now: DateTime<Utc> = "2026-11-21T12:00:00Z".parse().unwrap();
    match config::parse("jobs.toml", document.to_owned(), &Environment::new(now)) {
        Ok((config, _)) => config,
        Err(report) => panic!("{}\n{document}", report.render(false)),
    }
}

#[test]
fn a_setting_holds_from_its_line_on_and_what_all_share_is_a_default() {
    let document = import("A=1\nB=2\n* * * * * one\nB=$x\n0 * * * * two\n");
    assert!(
        document.contains("[defaults.env]\nA = \"1\"\nPATH = \"/usr/bin:/bin\"    # import: cron's default, because the crontab sets none"),
        "{document}"
    );
    let config = read_again(&document);
    let b = |name: &str| config.jobs.values().find(|job| job.name.as_str() == name).unwrap().command.env["B"].clone();
    assert_eq!((b("one"), b("two")), ("2".to_owned(), "$x".to_owned()));
}

#[test]
fn comments_stay_above_their_job() {
    let document = import("# of the file\n\n# of one\n* * * * * one\n# of two\n* * * * * two\n");
    let lines: Vec<&str> = document.lines().skip_while(|line| *line != "# of the file").collect();
    assert_eq!(&lines[..4], ["# of the file", "", "# of one", "# c:4: * * * * * one"].as_slice(), "{document}");
    let two = lines.iter().position(|line| *line == "# of two").unwrap();
    assert_eq!(lines[two + 2], "[jobs.two]");
}

#[test]
fn what_cannot_be_imported_is_named_with_its_line() {
    let document = import("@reboot one\n5/15 * * * * two\nCRON_TZ=Nowhere\n* * * * * three\nA-B=1\n");
    for part in [
        "# import: c:1 is not imported: @reboot has no time",
        "# @reboot one",
        "# import: c:2 is not imported: minute \"5/15\" has a step",
        "# 5/15 * * * * two",
        "# import: c:3 is not imported: CRON_TZ=Nowhere",
        "# import: c:4 is not imported: CRON_TZ=Nowhere is no IANA time zone, so when it runs",
        "# import: c:5 is not imported: names no variable",
    ] {
        assert!(document.contains(part), "{part}\n{document}");
    }
    assert!(read_again(&document).jobs.is_empty());
}

#[test]
fn a_command_that_guards_itself_is_told_of() {
    let document = import("0 * * * * flock -n /tmp/l push\n5 * * * * cronward exec --job bill -- bill\n");
    assert!(document.contains("# import: flock keeps two runs of one machine apart"), "{document}");
    assert!(document.contains("take `cronward exec … --` out"), "{document}");
    assert!(read_again(&document).jobs.keys().any(|name| name.as_str() == "bill"));
}

#[test]
fn a_lock_that_the_command_takes_in_redis_is_told_of() {
    for line in [
        "redis-cli SET lock:push 1 NX EX 3600 && push",
        "[ \"$(redis-cli -h r set lock:push $$ EX 60 nx)\" = OK ] && push",
        "if redis-cli SETNX lock:push 1 | grep -q 1; then push; fi",
    ] {
        let document = import(&format!("0 * * * * {line}\n"));
        assert!(document.contains("# import: redis-cli sets the lock lock:push for one machine"), "{document}");
    }
    for line in ["redis-cli SET lock:push 1 EX 3600", "redis-cli GET nx", "echo set x nx"] {
        assert!(!import(&format!("0 * * * * {line}\n")).contains("sets the lock"), "{line}");
    }
}

#[test]
fn a_zone_is_cron_s_own_word_before_the_flag_and_tz_only_without_one() {
    let zones = |text: &str, source| {
        let source = Source { file: "c", text: text.as_bytes(), system: false, zone: (Zone::UTC, source) };
        let config =
            read_again(&document::write(&table::read(&source, &mut Names::default()), source.zone.clone(), None));
        config.jobs.values().map(|job| job.timezone.name().to_owned()).collect::<Vec<_>>()
    };
    let tz = "TZ=Asia/Tokyo\n0 * * * * a\nCRON_TZ=Europe/Berlin\n0 * * * * b\n";
    assert_eq!(zones(tz, ZoneSource::Machine), ["Asia/Tokyo", "Europe/Berlin"]);
    assert_eq!(zones(tz, ZoneSource::Flag), ["UTC", "Europe/Berlin"]);
}

/// Lines as people write them, and as nobody should.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~\t]{0,60}",
        "[*0-9,/-]{1,6} [*0-9]{1,3} [*0-9]{1,3} [*0-9]{1,2} [*0-7]{1,2} [ -~]{1,40}",
        "@(daily|hourly|reboot|weekly) [ -~é]{1,30}",
        "\"?[A-Z_]{1,8}\"? ?= ?['\"]?[ -~]{0,20}['\"]?",
        "(CRON_TZ|TZ|SHELL|MAILTO|RANDOM_DELAY|HOME) = ?(UTC|Europe/Berlin|/bin/bash|5|x\\$y|/usr/bin/fish)",
        "#[ -~é\t]{0,30}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_is_imported_can_be_read_again_and_no_line_is_lost(
        lines in prop::collection::vec(line(), 0..8), system in any::<bool>(),
    ) {
        let text = lines.join("\n") + "\n";
        let items = items(text.as_bytes(), system);
        let document = document::write(&items, berlin(), None);
        let config = read_again(&document);
        let jobs = items.iter().filter(|item| matches!(item, Item::Job(_))).count();
        prop_assert_eq!(config.jobs.len(), jobs, "{}", document);
        for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let told = document.contains(&format!("# c:{}: ", index + 1))
                || document.contains(&format!("c:{} is not imported", index + 1))
                || document.contains(&format!("# import: c:{}: ", index + 1));
            let setting = matches!(&super::entry::lines(line.as_bytes())[0].line, super::entry::CrontabLine::Variable(..));
            let comment = line.trim_start().starts_with('#');
            prop_assert!(told || setting || comment, "{:?} is lost in\n{}", line, document);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), system in any::<bool>()) {
        read_again(&document::write(&items(&bytes, system), berlin(), None));
    }
}
