//! Time zones as the program takes them: from the database that `TZDIR` names.

use std::path::PathBuf;

use crate::program::{Ended, Place};
use crate::zone_file;

/// A database with one made-up zone, 3 hours ahead of UTC.
fn database(place: &Place) -> PathBuf {
    let folder = place.path().join("zoneinfo");
    zone_file::write(&folder, "Mars/Base", 3);
    std::fs::write(folder.join("+VERSION"), "2031a\n").unwrap();
    folder
}

fn run(place: &Place, folder: &std::path::Path, args: &[&str]) -> Ended {
    place.command(args).env("TZDIR", folder).output().unwrap().into()
}

const NINE: [&str; 7] =
    ["next", "--schedule", "0 9 * * *", "--from", "2026-11-30T00:00:00Z", "--timezone", "Mars/Base"];

#[test]
fn a_made_up_zone_of_tzdir_has_the_hours_of_its_file() {
    let place = Place::new();
    let folder = database(&place);
    let ended = run(&place, &folder, &[&NINE[..], &["--count", "1", "--json"]].concat());
    let ticks: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
    assert_eq!(
        (&ticks[0]["tick"], &ticks[0]["local"]),
        (&"2026-11-30T06:00:00Z".into(), &"2026-11-30T09:00:00+03:00".into())
    );
    let without = place.run(&NINE);
    assert_eq!(without.code, 64, "{without:?}");
    assert!(without.stderr.contains("\"Mars/Base\" is not a time zone of "), "{without:?}");
}

#[test]
fn check_says_which_database_the_zones_of_the_jobs_come_from() {
    let place = Place::with_jobs(
        "[node]\nname = \"a\"\n[store]\nurl = \"sqlite:x.db\"\n\
         [jobs.a]\nschedule = \"0 9 * * *\"\ntimezone = \"Mars/Base\"\ncommand = [\"true\"]\n",
    );
    let folder = database(&place);
    let ended = run(&place, &folder, &["check"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.contains(&format!("\ntime zones: {} (2031a)\n", folder.display())), "{ended:?}");

    let unknown = run(&place, &place.path().join("absent"), &["check"]);
    assert_eq!(unknown.code, 78, "{unknown:?}");
    place.write(
        "jobs.toml",
        &std::fs::read_to_string(place.path().join("jobs.toml")).unwrap().replace("Mars/Base", "Asia/Tokyo"),
    );
    let elsewhere = run(&place, &place.path().join("absent"), &["check"]);
    assert_eq!(elsewhere.code, 0, "{elsewhere:?}");
    assert!(elsewhere.stdout.contains("/absent has no zone files\n"), "{elsewhere:?}");
}
