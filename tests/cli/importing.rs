//! `cronward import crontab`, on crontabs as they are found: what comes out is read by the real parser and ticks as cron
//! would, and the whole text is as expected.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use chrono::{DateTime, Duration, Utc};
use cronward::Zone;
use cronward::config::{self, Config, Environment};
use cronward::job::{JobSpec, Program};
use cronward::schedule::Timetable;

use crate::program::{Ended, Place};
use crate::vixie::{Timeline, entry};

const BEGIN: &str = "2026-11-21T12:00:00Z";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/crontabs")
}

/// Imports crontabs of the folder.
fn import(files: &[&str], flags: &[&str]) -> Ended {
    let args = [&["import", "crontab", "--timezone", "Europe/Berlin"], files, flags].concat();
    Place::new().command(&args).current_dir(folder()).output().unwrap().into()
}

/// Imports a text by stdin, in a zone.
fn import_text(text: &str, flags: &[&str]) -> Ended {
    let args = [&["import", "crontab", "-"], flags].concat();
    let mut child = Place::new();
    let mut child = child_of(&mut child, &args);
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

fn child_of(place: &mut Place, args: &[&str]) -> std::process::Child {
    let mut command = place.command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn checked(document: &str) -> Config {
    let now = BEGIN.parse().unwrap();
    match config::parse("jobs.toml", document.to_owned(), &Environment::new(now)) {
        Ok((config, _)) => config,
        Err(report) => panic!("{}\n{document}", report.render(false)),
    }
}

/// The name of the job made from each line, and what is told of it, by `FILE:LINE`.
fn jobs_by_line(document: &str) -> BTreeMap<String, (String, String)> {
    let mut jobs = BTreeMap::new();
    let mut place: Option<String> = None;
    let mut told = String::new();
    for line in document.lines() {
        if let Some(name) = line.strip_prefix("[jobs.") {
            let name = name.trim_end_matches(']').trim_matches('"').to_owned();
            jobs.insert(place.take().expect("each job says where it is from"), (name, std::mem::take(&mut told)));
        } else if let Some(rest) = line.strip_prefix("# import: ") {
            told.push_str(rest);
        } else if let Some((at, _)) = line.strip_prefix("# ").and_then(|line| line.split_once(": ")) {
            let numbered = at.rsplit_once(':').is_some_and(|(_, number)| number.parse::<usize>().is_ok());
            if numbered {
                place = Some(at.to_owned());
                told.clear();
            }
        }
    }
    jobs
}

/// The entries of a crontab that cron runs at times, with their lines and zones: read without the importer.
fn entries(text: &str, zone: &str) -> Vec<(usize, Zone, String)> {
    let mut zone: Zone = zone.parse().unwrap();
    let mut entries = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if let Some(name) = line.strip_prefix("CRON_TZ=") {
            zone = name.parse().unwrap();
        } else if line
            .starts_with(|c: char| c == '*' || c.is_ascii_digit() || (c == '@' && !line.starts_with("@reboot")))
        {
            entries.push((index + 1, zone.clone(), line.to_owned()));
        }
    }
    entries
}

fn job<'a>(config: &'a Config, name: &str) -> &'a JobSpec {
    config.jobs.values().find(|job| job.name.as_str() == name).unwrap_or_else(|| panic!("no job {name}"))
}

/// The ticks of a job in `(from, to]`.
fn ticks(spec: &JobSpec, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<DateTime<Utc>> {
    let timetable = Timetable::of(spec).unwrap();
    timetable.schedule().ticks_after(from).take_while(|tick| *tick <= to).collect()
}

/// Compares every job of an imported crontab with what cron would do in a span of time.
fn assert_runs_as_cron(file: &str, text: &str, document: &str, spans: &[(DateTime<Utc>, DateTime<Utc>)]) {
    let config = checked(document);
    let by_line = jobs_by_line(document);
    let mut lines: BTreeMap<(String, usize), Timeline> = BTreeMap::new();
    for (number, zone, line) in entries(text, "Europe/Berlin") {
        let place = format!("{file}:{number}");
        let (name, told) = by_line.get(&place).unwrap_or_else(|| panic!("{place} is lost in\n{document}"));
        let spec = job(&config, name);
        assert_eq!(spec.timezone, zone, "{place}");
        for (index, (from, to)) in spans.iter().enumerate() {
            let timeline =
                lines.entry((zone.name().to_owned(), index)).or_insert_with(|| Timeline::walk(&zone, *from, *to));
            let mut expected = timeline.runs(&entry(&line));
            let mut found = ticks(spec, *from, *to);
            if told.contains("when the clock goes back") {
                // It was told that this differs: within three hours of a change.
                let offset = |at: DateTime<Utc>| *zone.local(at).offset();
                let near =
                    |tick: &DateTime<Utc>| offset(*tick - Duration::hours(3)) != offset(*tick + Duration::hours(3));
                expected.retain(|tick| !near(tick));
                found.retain(|tick| !near(tick));
            }
            assert_eq!(found, expected, "{place}: {line} became {} in {zone}", spec.schedule);
        }
    }
}

fn year() -> Vec<(DateTime<Utc>, DateTime<Utc>)> {
    let from: DateTime<Utc> = BEGIN.parse().unwrap();
    vec![(from, from + Duration::days(366))]
}

const CRON_D: [&str; 6] =
    ["cron.d/certbot", "cron.d/e2scrub_all", "cron.d/logcheck", "cron.d/mdadm", "cron.d/php", "cron.d/sysstat"];

#[test]
fn crontabs_as_they_are_found_tick_as_cron_would_for_a_year() {
    for files in [&["debian"][..], &["redhat"], &["manual"], &["site"], &CRON_D] {
        let told = import(files, &[]);
        assert_eq!(told.code, 0, "{files:?}: {}", told.stderr);
        for file in files {
            let text = std::fs::read_to_string(folder().join(file)).unwrap();
            assert_runs_as_cron(file, &text, &told.stdout, &year());
        }
    }
}

#[test]
fn the_whole_text_is_as_expected() {
    for (name, files) in [
        ("debian", &["debian"][..]),
        ("redhat", &["redhat"]),
        ("manual", &["manual"]),
        ("site", &["site"]),
        ("cron.d", &CRON_D),
        ("broken", &["broken"]),
    ] {
        let told = import(files, &[]);
        let kept = folder().join(format!("expected/{name}.toml"));
        if std::env::var_os("CRONWARD_KEEP_EXPECTED").is_some() {
            std::fs::create_dir_all(kept.parent().unwrap()).unwrap();
            std::fs::write(&kept, &told.stdout).unwrap();
        }
        let expected = std::fs::read_to_string(&kept).unwrap();
        assert_eq!(told.stdout, expected, "CRONWARD_KEEP_EXPECTED=1 writes {} anew", kept.display());
    }
}

#[test]
fn what_is_imported_passes_the_check() {
    for files in [&["debian"][..], &["redhat"], &["manual"], &["site"], &["broken"], &CRON_D] {
        let told = Place::with_jobs(&import(files, &[]).stdout).run(&["check"]);
        assert_eq!((told.code, &*told.stderr), (0, ""), "{files:?}: {}", told.stdout);
        assert!(!told.stdout.contains("more than once per"), "{files:?}: {}", told.stdout);
    }
}

#[test]
fn a_user_of_another_machine_is_no_command_and_the_guess_is_told() {
    let system = import_text("0 3 * * * no-such-account /srv/app/nightly\n5 3 * * * root /srv/app/report\n", &[]);
    assert_eq!(system.code, 0, "{}", system.stderr);
    let config = checked(&system.stdout);
    let users: Vec<_> = config.jobs.values().map(|job| job.command.user.as_deref()).collect();
    assert_eq!(users, [Some("no-such-account"), Some("root")], "{}", system.stdout);
    let told = "stdin:1: no-such-account is read as a user, although this machine has no such account; if it is a command, \
                import with --personal";
    assert!(system.stderr.contains(&format!("warning: {told}")), "{}", system.stderr);
    assert!(system.stdout.contains(&format!("# import: {told}")), "{}", system.stdout);

    let own = import_text("0 3 * * * no-such-account /srv/app/nightly\n5 3 * * * php /srv/app/report\n", &[]);
    assert!(checked(&own.stdout).jobs.values().all(|job| job.command.user.is_none()), "{}", own.stdout);
    assert!(own.stderr.contains("warning: stdin:1: no-such-account is read as a command"), "{}", own.stderr);
    let sure = import_text("0 3 * * * no-such-account /srv/app/nightly\n5 3 * * * /srv/app/report\n", &[]);
    assert!(!sure.stderr.contains("warning"), "{}", sure.stderr);
    let said = import_text("0 3 * * * no-such-account /srv/app/nightly\n", &["--personal"]);
    assert!(!said.stderr.contains("warning"), "{}", said.stderr);
}

#[test]
fn each_line_that_cannot_be_imported_is_told_with_its_place() {
    let told = import(&["broken"], &[]);
    assert_eq!(told.code, 1);
    let warned: Vec<&str> = told.stderr.lines().filter_map(|line| line.strip_prefix("warning: broken:")).collect();
    let numbers: Vec<usize> = warned.iter().map(|line| line.split(':').next().unwrap().parse().unwrap()).collect();
    assert_eq!(numbers, [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 17, 21], "{}", told.stderr);
    for number in numbers {
        assert!(told.stdout.contains(&format!("# import: broken:{number} is not imported: ")), "{number}");
    }
    let reboot = import_text("@reboot a\n", &[]);
    assert_eq!(reboot.code, 0, "what is right in cron is only told: {}", reboot.stderr);
}

#[test]
fn any_schedule_ticks_as_cron_would() {
    // A fixed sequence of numbers, so that each run is the same.
    let mut state: u64 = 0x5eed;
    let mut below = move |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let mut field = |low: u64, high: u64, stars: u64, names: &[&str]| {
        let items = 1 + below(3) / 2;
        let mut list = Vec::new();
        for _ in 0..items {
            let from = low + below(high - low + 1);
            let to = from + below(high - from + 1);
            list.push(match below(6 + stars) {
                0 => format!("{from}-{to}"),
                1 => format!("{from}-{to}/{}", 1 + below(high)),
                2 => format!("*/{}", 1 + below(high + 4)),
                3 | 4 => from.to_string(),
                5 => {
                    let pick = usize::try_from(below(names.len().max(1) as u64)).unwrap();
                    names.get(pick).map_or(from.to_string(), |name| (*name).to_owned())
                }
                _ => "*".to_owned(),
            });
        }
        list.join(",")
    };
    let days = ["sun", "Mon", "tue", "wed", "THU", "fri", "sat"];
    let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let mut text = String::new();
    for _ in 0..240 {
        let (minute, hour) = (field(0, 59, 0, &[]), field(0, 23, 4, &[]));
        let (day, month, weekday) = (field(1, 31, 6, &[]), field(1, 12, 12, &months), field(0, 7, 6, &days));
        text.push_str(&format!("{minute} {hour} {day} {month} {weekday} /bin/true\n"));
    }
    let told = import_text(&text, &["--timezone", "Europe/Berlin"]);
    // A day that no month has is refused: nothing else may be.
    let refused: Vec<&str> = told.stderr.lines().filter(|line| line.starts_with("warning: ")).collect();
    assert!(refused.iter().all(|line| line.contains("never ticks")) && refused.len() < 8, "{refused:?}");
    let number = |line: &&str| line.split(':').nth(2).unwrap().parse::<usize>().unwrap();
    let never: Vec<usize> = refused.iter().map(number).collect();
    let read =
        |(index, line): (usize, &str)| if never.contains(&(index + 1)) { String::new() } else { line.to_owned() };
    let kept: Vec<String> = text.lines().enumerate().map(read).collect();
    let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
    let spans = ["2026-12-25T00:00:00Z", "2027-02-25T00:00:00Z", "2027-03-26T00:00:00Z", "2027-10-29T00:00:00Z"];
    let spans: Vec<_> = spans.iter().map(|from| (at(from), at(from) + Duration::days(9))).collect();
    assert_runs_as_cron("stdin", &kept.join("\n"), &told.stdout, &spans);
}

#[test]
fn a_command_reads_what_cron_would_have_given_it() {
    for (line, expected) in [
        ("cat%Joe,%%it's 100\\% \"done\" $HOME \\x%", "Joe,\n\nit's 100% \"done\" $HOME \\x\n"),
        ("read a; echo \"[$a]\"; cat%one%two%three", "[one]\ntwo\nthree\n"),
        ("cd / && cat%INPUT", "INPUT\n"),
        ("printf '\\%s.' a b", "a.b."),
    ] {
        for shell in ["/bin/sh", "/bin/bash"] {
            let told = import_text(&format!("SHELL={shell}\n0 * * * * {line}\n"), &[]);
            let config = checked(&told.stdout);
            let command = match config.jobs.into_values().next().unwrap().command.program {
                Program::Shell(script) => Command::new("/bin/sh").arg("-c").arg(script).output(),
                // As the daemon does: no shell but the one that is named, and doubled braces are braces.
                Program::Direct(words) => Command::new(&words[0]).args(&words[1..]).output(),
            };
            assert_eq!(String::from_utf8(command.unwrap().stdout).unwrap(), expected, "{line} in {shell}");
        }
    }
}

#[test]
fn a_system_crontab_is_known_by_its_users_and_the_flags_have_the_last_word() {
    let text = "0 * * * * root true\n";
    let users = |flags: &[&str]| {
        let config = checked(&import_text(text, flags).stdout);
        config.jobs.into_values().map(|job| (job.command.user, job.command.program)).next().unwrap()
    };
    let shell = |line: &str| Program::Shell(line.to_owned());
    assert_eq!(users(&[]), (Some("root".to_owned()), shell("true")));
    assert_eq!(users(&["--personal"]), (None, shell("root true")));
    assert_eq!(users(&["--user", "app"]), (Some("app".to_owned()), shell("root true")));
    let both = import_text(text, &["--system", "--personal"]);
    assert_eq!(both.code, 64);
}

#[test]
fn a_file_that_is_not_there_is_a_usage_error() {
    let told = import(&["nowhere"], &[]);
    assert_eq!((told.code, &*told.stdout), (64, ""));
    assert!(told.stderr.starts_with("error: cannot read nowhere: "), "{}", told.stderr);
}
