//! What about a SQLite file can betray the guard: its log, how it is synced, the room on its disk. Judged by `judge`, which is
//! pure. Changes nothing.

use rustix::fs::statvfs;

use super::SqliteStore;
use crate::store::Finding;
use crate::store::sql::fault::SqlFault;

/// Below this a few busy days may fill the disk.
const LITTLE_ROOM: u64 = 256 * 1024 * 1024;
/// Below this the next checkpoint may fail.
const NO_ROOM: u64 = 16 * 1024 * 1024;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct FileFacts {
    version: String,
    journal_mode: String,
    /// `PRAGMA synchronous`: 2 is FULL.
    synchronous: i64,
    /// Bytes that a user may still write on the file's disk.
    room: Option<u64>,
}

impl SqliteStore {
    /// Looks at the file.
    pub(super) async fn look(&self) -> Vec<Finding> {
        match self.ask().await {
            Ok(said) => judge(&said),
            // That it cannot be opened is found out by whoever asks first.
            Err(_) => Vec::new(),
        }
    }

    async fn ask(&self) -> Result<FileFacts, SqlFault> {
        let mut lane = self.shared.writer.hold(&self.shared.connector).await?;
        let conn = lane.conn()?;
        let version = sqlx::query_scalar("SELECT sqlite_version()").fetch_one(&mut *conn).await?;
        let journal_mode = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut *conn).await?;
        let synchronous = sqlx::query_scalar("PRAGMA synchronous").fetch_one(&mut *conn).await?;
        let path = self.path().to_owned();
        // Looking at a disk may wait; not in the caller's thread.
        let disk = tokio::task::spawn_blocking(move || statvfs(&path)).await;
        let room = disk.ok().and_then(Result::ok).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        Ok(FileFacts { version, journal_mode, synchronous, room })
    }
}

/// What is to be said of a file of which this was found.
fn judge(said: &FileFacts) -> Vec<Finding> {
    let mut findings = vec![Finding::ok("version", format!("sqlite {}", said.version))];
    findings.push(match said.journal_mode.as_str() {
        "wal" => Finding::ok("persistence", format!("write-ahead log, synchronous {}", said.synchronous)),
        other => {
            let effect = "readers wait for writers: claims may come too late";
            Finding::warning("persistence", format!("journal_mode {other}"), effect, "PRAGMA journal_mode = WAL")
        }
    });
    if said.synchronous < 2 {
        let effect = "a power cut loses what was answered last: a slot may be granted twice";
        let found = format!("synchronous {}", said.synchronous);
        findings.push(Finding::fault("durability", found, effect, "PRAGMA synchronous = FULL"));
    }
    findings.push(match said.room {
        None => Finding::warning("disk", "its free space is not known", "a full disk takes no claims", "look with df"),
        Some(room) => {
            let found = format!("{} MiB free", room / (1024 * 1024));
            let effect = "a full disk takes no claims: nothing starts";
            match room {
                ..NO_ROOM => Finding::fault("disk", found, effect, "free some, or move the file: [store] url"),
                NO_ROOM..LITTLE_ROOM => {
                    Finding::warning("disk", found, effect, "free some, or move the file: [store] url")
                }
                _ => Finding::ok("disk", found),
            }
        }
    });
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Severity;

    fn trouble(change: impl Fn(&mut FileFacts)) -> Vec<String> {
        let mut said = FileFacts {
            version: "3.46.0".to_owned(),
            journal_mode: "wal".to_owned(),
            synchronous: 2,
            room: Some(LITTLE_ROOM * 10),
        };
        change(&mut said);
        let bad = judge(&said).into_iter().filter(|finding| finding.severity > Severity::Ok);
        bad.map(|finding| format!("{} {}", finding.check, finding.severity.as_str())).collect()
    }

    #[test]
    fn each_thing_that_can_betray_the_guard_is_told_with_its_weight() {
        assert_eq!(trouble(|_| ()), [""; 0]);
        assert_eq!(trouble(|said| said.journal_mode = "delete".to_owned()), ["persistence warning"]);
        assert_eq!(trouble(|said| said.synchronous = 1), ["durability error"]);
        assert_eq!(trouble(|said| said.room = Some(LITTLE_ROOM - 1)), ["disk warning"]);
        assert_eq!(trouble(|said| said.room = Some(1)), ["disk error"]);
        assert_eq!(trouble(|said| said.room = None), ["disk warning"]);
    }
}
