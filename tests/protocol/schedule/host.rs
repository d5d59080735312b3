//! Every zone of the host's time zone database over ten years, against a reader of zone files of its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test says what it expects"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use chrono::{DateTime, TimeDelta, Utc};
use cronward::schedule::{Schedule, clock_changes};
use cronward::zone::Database;

/// 2025 to 2035.
const FROM: i64 = 1_735_689_600;
const TO: i64 = 2_051_222_400;
const HOUR: i64 = 3_600;

/// What a zone file says: from when on the clocks are so many seconds ahead of UTC. Rules beyond the last change are not read.
struct Clocks {
    first: i64,
    changes: Vec<(i64, i64)>,
}

impl Clocks {
    /// The second block of a file of version 2 or later (RFC 9636); none where its changes end before 2035 and rules go on.
    fn read(file: &[u8]) -> Option<Self> {
        let (_, after) = Self::block(file, 4);
        let (clocks, footer) = Self::block(&file[after..], 8);
        let rules = String::from_utf8_lossy(&file[after + footer..]).into_owned();
        let last = clocks.changes.last().map_or(0, |(at, _)| *at);
        (last > TO - 366 * 24 * HOUR || !rules.contains(',')).then_some(clocks)
    }

    /// The block and its length.
    fn block(data: &[u8], width: usize) -> (Self, usize) {
        assert_eq!(&data[..4], b"TZif");
        let number = |at: usize| u32::from_be_bytes(data[at..at + 4].try_into().unwrap()) as usize;
        let [utc, standard, leaps, times, types, chars] = [20, 24, 28, 32, 36, 40].map(number);
        let (indexes, infos) = (44 + times * width, 44 + times * (width + 1));
        let offset = |index: usize| {
            let at = infos + 6 * index;
            i64::from(i32::from_be_bytes(data[at..at + 4].try_into().unwrap()))
        };
        let instant = |index: usize| {
            let bytes = &data[44 + index * width..44 + (index + 1) * width];
            match width {
                8 => i64::from_be_bytes(bytes.try_into().unwrap()),
                _ => i64::from(i32::from_be_bytes(bytes.try_into().unwrap())),
            }
        };
        let changes = (0..times).map(|index| (instant(index), offset(usize::from(data[indexes + index])))).collect();
        let length = infos + 6 * types + chars + leaps * (width + 4) + standard + utc;
        (Self { first: offset(0), changes }, length)
    }

    fn offset(&self, at: i64) -> i64 {
        let next = self.changes.partition_point(|(change, _)| *change <= at);
        next.checked_sub(1).map_or(self.first, |index| self.changes[index].1)
    }

    /// The changes of the clock in the years that are looked at.
    fn moves(&self) -> Vec<i64> {
        let moves = self.changes.iter().map(|(at, _)| *at).filter(|at| self.offset(*at) != self.offset(at - 1));
        moves.filter(|at| (FROM + 1..=TO).contains(at)).collect()
    }

    /// The quarters of an hour that the clock shows in `(from, to]`, each as often as it shows them.
    fn quarters(&self, from: i64, to: i64) -> Vec<i64> {
        let minutes = (from.div_euclid(60) + 1)..=to.div_euclid(60);
        minutes.map(|minute| minute * 60).filter(|at| (at + self.offset(*at)) % (HOUR / 4) == 0).collect()
    }

    /// 02:30 of each day, in `(from, to]`: when the clock shows it first, or when it jumps over it.
    fn half_past_two(&self, from: i64, to: i64) -> Vec<i64> {
        let day = 24 * HOUR;
        let days = (from / day - 2)..=(to / day + 2);
        let jumps_over = |wall: i64, at: i64| at - 1 + self.offset(at - 1) < wall && at + self.offset(at) > wall;
        let first = |wall: i64| {
            let candidates = [wall - self.offset(wall - day), wall - self.offset(wall + day)];
            let shown = candidates.into_iter().filter(|at| at + self.offset(*at) == wall).min();
            shown.or_else(|| self.moves().into_iter().find(|at| jumps_over(wall, *at)))
        };
        days.filter_map(|number| first(number * day + 2 * HOUR + HOUR / 2))
            .filter(|at| (from + 1..=to).contains(at))
            .collect()
    }
}

/// Every zone file below a folder, by the name of its zone.
fn zones(root: &Path) -> BTreeMap<String, Vec<u8>> {
    fn collect(root: &Path, folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if ["posix", "right", "localtime", "posixrules"].contains(&&*name) {
                continue;
            }
            if path.is_dir() {
                collect(root, &path, found);
            } else if let Ok(data) = std::fs::read(&path)
                && data.starts_with(b"TZif")
            {
                found.insert(name, data);
            }
        }
    }
    let mut found = BTreeMap::new();
    collect(root, root, &mut found);
    found
}

fn instant(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(second, 0).unwrap()
}

/// The folder of the host with every change until 2037 in its files; `zic` makes such a one where the host's files have rules instead.
fn folder_of_the_host() -> (PathBuf, Option<tempfile::TempDir>) {
    let host = PathBuf::from("/usr/share/zoneinfo");
    assert!(host.join("tzdata.zi").exists(), "this test takes the zone files of the host: apt-get install tzdata");
    if zones(&host).values().all(|file| Clocks::read(file).is_some()) {
        return (host, None);
    }
    let made = tempfile::tempdir().unwrap();
    let mut zic = Command::new("zic");
    let zic = zic.args(["-b", "fat", "-d"]).arg(made.path()).arg(host.join("tzdata.zi"));
    assert!(zic.status().expect("zic is installed").success());
    (made.path().to_owned(), Some(made))
}

#[test]
fn every_zone_of_the_host_ticks_as_its_zone_file_says_from_2025_to_2035() {
    let (folder, _made) = folder_of_the_host();
    let database = Database::open(Some(&folder));
    assert_eq!(database.folder(), Some(&*folder));
    let mut by_rules: BTreeMap<Vec<u8>, Vec<String>> = BTreeMap::new();
    zones(&folder).into_iter().for_each(|(name, file)| by_rules.entry(file).or_default().push(name));
    assert!(by_rules.len() > 200, "{} zones", by_rules.len());
    for (file, names) in &by_rules {
        let clocks = Clocks::read(file).expect("a file with every change");
        let (moves, zone) = (clocks.moves(), database.zone(&names[0]).unwrap());
        for name in names {
            // Other names of the zone have the same file.
            assert_eq!(
                seconds(clock_changes(&database.zone(name).unwrap(), instant(FROM), instant(TO))),
                moves,
                "{name}"
            );
        }
        let [quarters, daily] =
            ["*/15 * * * *", "30 2 * * *"].map(|expression| Schedule::parse(expression, zone.clone()).unwrap());
        // Between two changes the clock goes evenly: each change, and a day in every year.
        let years = (0..10).map(|year| FROM + year * 366 * 24 * HOUR);
        for at in moves.iter().copied().chain(years) {
            let ticks = |schedule: &Schedule, from, to| {
                seconds(schedule.ticks_after(instant(from)).take_while(|tick| *tick <= instant(to)))
            };
            let (from, to) = (at - 3 * HOUR, at + 3 * HOUR);
            assert_eq!(ticks(&quarters, from, to), clocks.quarters(from, to), "{quarters:?} near {}", instant(at));
            let (from, to) = (at - 50 * HOUR, at + 50 * HOUR);
            assert_eq!(ticks(&daily, from, to), clocks.half_past_two(from, to), "{daily:?} near {}", instant(at));
        }
    }
}

fn seconds(instants: impl IntoIterator<Item = DateTime<Utc>>) -> Vec<i64> {
    instants.into_iter().map(|at| at.timestamp()).collect()
}

#[test]
fn the_laws_of_2026_hold_in_the_copy_inside_the_program() {
    let from: DateTime<Utc> = "2026-11-30T00:00:00Z".parse().unwrap();
    for (zone, hour) in [("America/Edmonton", 15), ("America/Vancouver", 16), ("Africa/Casablanca", 9)] {
        let zone = Database::bundled().zone(zone).unwrap();
        let schedule = Schedule::parse("0 9 * * *", zone).unwrap();
        assert_eq!(schedule.next_after(from), Some(from + TimeDelta::hours(hour)), "{schedule:?}");
    }
}
