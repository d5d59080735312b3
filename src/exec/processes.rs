//! The processes of this machine as `/proc` lists them. Sends no signal, and waits for none of them.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;

/// What `/proc/PID/stat` says that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) pid: i32,
    pub(super) parent: i32,
    /// A zombie, or gone.
    pub(super) ended: bool,
}

/// Every process that this one can see.
pub(super) fn listed() -> Vec<Stat> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let stat = |name: std::ffi::OsString| {
        let pid: i32 = name.to_str()?.parse().ok()?;
        // All that matters is at the beginning, and comes in one read.
        let mut text = [0; 256];
        let count = File::open(format!("/proc/{pid}/stat")).and_then(|mut file| file.read(&mut text)).ok()?;
        parse(&String::from_utf8_lossy(text.get(..count)?))
    };
    entries.flatten().filter_map(|entry| stat(entry.file_name())).collect()
}

/// `pid (name) state parent …`; the name may hold spaces and parentheses (proc_pid_stat(5)).
fn parse(text: &str) -> Option<Stat> {
    let (pid, rest) = text.split_once(" (")?;
    let (_, rest) = rest.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let ended = matches!(fields.next()?, "Z" | "X" | "x");
    Some(Stat { pid: pid.parse().ok()?, parent: fields.next()?.parse().ok()?, ended })
}

/// All that come from `root`, parents first, without those that have ended.
pub(super) fn living(stats: &[Stat], root: i32) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<Stat>> = HashMap::new();
    for stat in stats {
        children.entry(stat.parent).or_default().push(*stat);
    }
    let mut found = Vec::new();
    let mut next = vec![root];
    while let Some(parent) = next.pop() {
        // Taken out, so that even a listing that was torn while numbers were used again cannot lead round in a circle.
        for child in children.remove(&parent).unwrap_or_default() {
            next.push(child.pid);
            found.extend((!child.ended).then_some(child.pid));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn stat(pid: i32, parent: i32) -> Stat {
        Stat { pid, parent, ended: false }
    }

    #[test]
    fn a_name_may_look_like_the_fields_after_it() {
        assert_eq!(parse("12 (a) Z 1 (b) S 7 12 12 0"), Some(stat(12, 7)));
        assert_eq!(parse("12 (sleep) Z 7 12"), Some(Stat { ended: true, ..stat(12, 7) }));
        assert_eq!(parse("12 (sleep"), None);
    }

    #[test]
    fn descendants_are_found_through_those_that_ended_and_no_others_are() {
        let stats = [stat(1, 0), stat(5, 1), Stat { ended: true, ..stat(6, 5) }, stat(7, 6), stat(8, 7), stat(9, 1)];
        assert_eq!(living(&stats, 5), [7, 8]);
    }

    #[test]
    fn a_torn_listing_ends() {
        assert_eq!(living(&[stat(6, 5), stat(5, 6)], 5), [6, 5]);
    }
}
