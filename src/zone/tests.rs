//! Where the rules of a zone come from.

use std::path::Path;

use chrono::{DateTime, Utc};

use super::{Database, Zone};

/// A zone file (RFC 9636) whose clocks are so many seconds ahead of UTC all year.
fn zone_file(ahead: i32, posix: &str) -> Vec<u8> {
    let block = |version: u8| {
        let counts = [0_u32, 0, 0, 0, 1, 4].map(u32::to_be_bytes).concat();
        [&[b'T', b'Z', b'i', b'f', version][..], &[0; 15], &counts, &ahead.to_be_bytes(), &[0, 0], b"ABC\0"].concat()
    };
    [block(b'2'), block(b'2'), format!("\n{posix}\n").into_bytes()].concat()
}

fn write(folder: &Path, name: &str, data: &[u8]) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, data).unwrap();
}

fn local(zone: &Zone, at: &str) -> String {
    let at: DateTime<Utc> = at.parse().unwrap();
    zone.local(at).to_rfc3339()
}

#[test]
fn a_zone_comes_from_the_folder_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "Mars/Base", &zone_file(5_400, "ABC-1:30"));
    write(folder.path(), "Europe/Berlin", &zone_file(7_200, "ABC-2"));
    write(folder.path(), "+VERSION", b"2031a\n");
    let database = Database::open(Some(folder.path()));
    assert_eq!((database.folder(), database.version()), (Some(folder.path()), Some("2031a")));
    assert_eq!(local(&database.zone("Mars/Base").unwrap(), "2026-11-30T12:00:00Z"), "2026-11-30T13:30:00+01:30");
    let berlin = database.zone("Europe/Berlin").unwrap();
    assert_eq!(
        (berlin.name(), &*local(&berlin, "2026-11-30T12:00:00Z")),
        ("Europe/Berlin", "2026-11-30T14:00:00+02:00")
    );
    assert_ne!(berlin, Database::bundled().zone("Europe/Berlin").unwrap(), "the name is the same, the rules are not");
}

/// Files of the first version, and some that were cut, say nothing of the time after their last transition.
#[test]
fn a_zone_without_rules_for_the_time_to_come_keeps_its_last_offset_and_changes_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let one = zone_file(3_600, "");
    write(folder.path(), "Mars/Cut", &one);
    write(folder.path(), "Mars/First", &[&one[..4], &[0], &one[5..one.len() / 2]].concat());
    let database = Database::open(Some(folder.path()));
    for name in ["Mars/Cut", "Mars/First"] {
        let zone = database.zone(name).unwrap();
        let at = "2026-11-30T12:00:00Z".parse().unwrap();
        assert_eq!(zone.changes_after(at).next(), None, "{name}");
        assert_eq!(local(&zone, "2026-11-30T12:00:00Z"), "2026-11-30T13:00:00+01:00", "{name}");
    }
}

#[test]
fn a_folder_without_zone_files_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    for named in [folder.path(), &folder.path().join("absent")] {
        let database = Database::open(Some(named));
        assert_ne!(database.folder(), Some(named));
        assert_eq!(database.passed_over(), Some(named));
        assert_eq!(local(&database.zone("Asia/Tokyo").unwrap(), "2026-11-30T12:00:00Z"), "2026-11-30T21:00:00+09:00");
    }
}

#[test]
fn the_copy_inside_the_program_knows_every_zone_and_its_release() {
    let database = Database::bundled();
    assert!(database.version().unwrap() >= "2026f" && database.folder().is_none());
    for name in super::known_names() {
        assert_eq!(database.zone(name).unwrap().name(), name);
    }
}

#[test]
fn the_release_is_read_from_the_source_where_no_version_file_is_and_may_be_unknown() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "Etc/A", &zone_file(0, "ABC0"));
    assert_eq!(Database::open(Some(folder.path())).version(), None);
    assert!(Database::open(Some(folder.path())).to_string().ends_with(" (version unknown)"));
    for (line, version) in [("# version 2026f\nR d", Some("2026f")), ("# tzdb data", None), ("# version a b\x1b", None)]
    {
        write(folder.path(), "tzdata.zi", line.as_bytes());
        assert_eq!(Database::open(Some(folder.path())).version(), version, "{line}");
    }
    write(folder.path(), "tzdata.zi", b"# version 2026f\n");
    write(folder.path(), "+VERSION", b"2027a\n");
    assert_eq!(Database::open(Some(folder.path())).version(), Some("2027a"));
}

#[test]
fn a_former_name_that_the_folder_lacks_has_the_rules_of_the_present_name() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "America/New_York", &zone_file(-18_000, "ABC5"));
    let database = Database::open(Some(folder.path()));
    let eastern = database.zone("US/Eastern").unwrap();
    assert_eq!(
        (eastern.name(), &*local(&eastern, "2026-07-01T12:00:00Z")),
        ("US/Eastern", "2026-07-01T07:00:00-05:00")
    );
}

#[test]
fn a_zone_that_cannot_be_used_is_refused_with_the_place_and_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "Etc/A", &zone_file(0, "ABC0"));
    write(folder.path(), "Etc/Cut", &zone_file(0, "ABC0")[..50]);
    write(folder.path(), "localtime", &zone_file(0, "ABC0"));
    write(folder.path(), "right/A", &zone_file(0, "ABC0"));
    let database = Database::open(Some(folder.path()));
    let refused = |name: &str| database.zone(name).unwrap_err().to_string();
    let place = database.to_string();
    for name in ["", "Mars/Base", "etc/a", "../Etc/A", "/Etc/A", "Etc/A/", "Etc//A", "localtime", "right/A", "Etc/A\n"]
    {
        assert_eq!(refused(name), format!("{name:?} is not a time zone of {place}"));
    }
    assert_eq!(
        refused("Europe/Berlin"),
        format!("\"Europe/Berlin\" is not a time zone of {place}, which is older than the zone")
    );
    assert!(refused("Etc/Cut").contains(": the file is no zone file: "), "{}", refused("Etc/Cut"));
    assert!(refused("Etc").contains("it is a directory"), "{}", refused("Etc"));
    assert!(refused(&"x".repeat(500)).len() < 200);
}

#[test]
fn a_changed_file_is_a_changed_database_and_a_file_that_is_gone_leaves_its_rules() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "Etc/A", &zone_file(0, "ABC0"));
    write(folder.path(), "Etc/B", &zone_file(0, "ABC0"));
    let open = || Database::open(Some(folder.path()));
    let old = open();
    let (a, b) = (old.zone("Etc/A").unwrap(), old.zone("Etc/B").unwrap());
    assert!(!open().follow(&old).changed);

    write(folder.path(), "Etc/A", &zone_file(3_600, "ABC-1"));
    std::fs::remove_file(folder.path().join("Etc/B")).unwrap();
    let new = open();
    let refresh = new.follow(&old);
    assert!(refresh.changed);
    assert_eq!(refresh.kept.iter().map(|error| &*error.name).collect::<Vec<_>>(), ["Etc/B"]);
    assert_ne!(new.zone("Etc/A").unwrap(), a);
    assert_eq!(new.zone("Etc/B").unwrap(), b);

    write(folder.path(), "+VERSION", b"2031a\n");
    assert!(open().follow(&new).changed, "another release, though no zone in use differs");
}

#[test]
fn the_clocks_of_a_zone_change_when_the_tz_database_says() {
    let berlin = Database::bundled().zone("Europe/Berlin").unwrap();
    let from: DateTime<Utc> = "2026-01-01T00:00:00Z".parse().unwrap();
    let changes: Vec<String> = berlin.changes_after(from).take(3).map(|at| at.to_rfc3339()).collect();
    assert_eq!(changes, ["2026-03-29T01:00:00+00:00", "2026-10-25T01:00:00+00:00", "2027-03-28T01:00:00+00:00"]);
    assert_eq!(Zone::UTC.changes_after(from).next(), None);
    for at in [DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC] {
        assert!(berlin.seconds_ahead(at) > 0);
    }
}
