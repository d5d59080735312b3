//! What Linux says of this process (proc(5)), as every program tells it to Prometheus.

use std::fs;

/// USER_HZ: what Linux counts processor time in, whatever its own timer's rate (time(7)).
const TICKS_PER_SECOND: f64 = 100.0;

/// What this process takes. What cannot be read is left out.
#[derive(Debug, Default)]
pub(super) struct ProcessFigures {
    pub(super) resident_bytes: Option<u64>,
    pub(super) cpu_seconds: Option<f64>,
    pub(super) open_fds: Option<usize>,
}

impl ProcessFigures {
    /// Now.
    pub(super) fn read() -> Self {
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        Self {
            resident_bytes: resident_bytes(&text("/proc/self/status")),
            cpu_seconds: cpu_seconds(&text("/proc/self/stat")),
            // One is that of the folder itself.
            open_fds: fs::read_dir("/proc/self/fd").ok().map(|found| found.count().saturating_sub(1)),
        }
    }
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1_024)
}

/// User and system time: the 14th and the 15th field, the name of the program, which is the second, may have blanks.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(11);
    let mut ticks = || fields.next()?.parse::<u32>().ok();
    Some((f64::from(ticks()?) + f64::from(ticks()?)) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_proc_are_read_as_they_are() {
        assert_eq!(resident_bytes("VmHWM:\t  999 kB\nVmRSS:\t    24 kB\n"), Some(24_576));
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 1 2 3 4 250 50 6 7 20 0 2 0 12345";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!((resident_bytes("VmRSS: x"), cpu_seconds("7 (a) S 1")), (None, None));
        let now = ProcessFigures::read();
        assert!(now.resident_bytes > Some(1 << 20) && now.cpu_seconds.is_some() && now.open_fds > Some(2), "{now:?}");
    }
}
