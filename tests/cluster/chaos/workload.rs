//! The jobs of a chaos run and the programs that compete with them for locks, and the command by which each run records itself.

use std::fmt::Write as _;
use std::time::Duration;

/// `work.sh NAP [EVERY NAPS CODES]`: takes NAP seconds and exits well; in every EVERYth slot of the job attempt n takes the
/// n-th of NAPS and exits with the n-th of CODES, the last of them for all that follow. `work.sh NAP as NAME NUMBER` is no job's:
/// it records itself by these. Start and end go to one file, each one write with O_APPEND, with the locks that are held and the
/// processes that were seen `beside`: the last to have begun with one of them, as far as they live. A process is known by its number
/// and its start. It starts no other process: a run costs one bash. Naps are reads of a pipe that nobody writes.
pub(super) const SCRIPT: &str = r#"#!/bin/bash
cd "${0%/*}" || exit 90
nap=$1 code=0 slot=$((CRONWARD_FENCE / 1000))
if [[ $2 == as ]]; then
    CRONWARD_JOB=$3 CRONWARD_SLOT=$4 CRONWARD_ATTEMPT=0 CRONWARD_FENCE=0 CRONWARD_NODE=$3
elif [[ $2 && $((slot / ${CRONWARD_JOB##*-} % $2)) = 0 ]]; then
    IFS=, read -ra naps <<<"$3"
    IFS=, read -ra codes <<<"$4"
    n=$((CRONWARD_ATTEMPT > 0 ? CRONWARD_ATTEMPT - 1 : 0))
    nap=${naps[n < ${#naps[@]} ? n : -1]} code=${codes[n < ${#codes[@]} ? n : -1]}
fi
alive=alive/$CRONWARD_JOB@$CRONWARD_SLOT overlap=false
if [[ -e $alive ]] && read -r before <"$alive" && kill -0 "$before" 2>&-; then overlap=true; fi
echo $$ >"$alive"
birth() { { read -ra stat <"/proc/$1/stat"; } 2>/dev/null && [[ ${stat[2]} != [ZX] ]] && born=${stat[21]}; }
look() {
    beside=
    for lock in $CRONWARD_LOCKS; do
        mapfile -t held <"locks/$lock"
        for ((i = ${#held[@]} > 30 ? ${#held[@]} - 30 : 0; i < ${#held[@]}; i++)); do
            pid=${held[i]% *}
            [[ $pid != $$ ]] && birth "$pid" && [[ $born = "${held[i]#* }" ]] && beside+="$pid "
        done
    done
}
form='{"event":"%s","job":"%s","slot":"%s","attempt":%s,"fence":%s,"node":"%s","pid":%s,"overlap":%s,'
form+='"locks":"%s","lock_fence":%s,"beside":"%s","at_ms":%s}\n'
record() {
    look
    printf "$form" "$1" "$CRONWARD_JOB" "$CRONWARD_SLOT" "$CRONWARD_ATTEMPT" "$CRONWARD_FENCE" "$CRONWARD_NODE" $$ "$overlap" \
        "$CRONWARD_LOCKS" "${CRONWARD_LOCK_FENCE:-0}" "$beside" "$((${EPOCHREALTIME/[.,]/} / 1000))" >>work.jsonl
}
birth $$
for lock in $CRONWARD_LOCKS; do echo "$$ $born" >>"locks/$lock"; done
record start
exec 3<>nap
read -rt "$nap" -u 3
record end
exit "$code"
"#;

/// One job. Its name ends in the length of its slots in seconds, a divisor of 60.
struct Job {
    name: &'static str,
    args: &'static [&'static str],
    keys: &'static str,
    /// What it holds, as `cronward lock` reads it, and its keys that go with that; where the store keeps locks.
    locks: &'static [&'static str],
    lock_keys: &'static str,
}

const fn job(name: &'static str, args: &'static [&'static str], keys: &'static str) -> Job {
    Job { name, args, keys, locks: &[], lock_keys: "" }
}

impl Job {
    const fn holds(self, locks: &'static [&'static str], lock_keys: &'static str) -> Self {
        Self { locks, lock_keys, ..self }
    }
}

/// What their names begin with: always done by the first attempt, and soon.
pub(super) const QUICK: &str = "quick-";

const JOBS: &[Job] = &[
    job("quick-a-2", &["0.05"], ""),
    job("quick-b-2", &["0.2"], ""),
    job("quick-a-3", &["0.02"], ""),
    job("quick-4", &["0.05"], ""),
    job("quick-5", &["0.5"], ""),
    // These two are kept by the servers of a cluster that keep no other job so soon done and so long due.
    job("quick-b-6", &["0.05"], ""),
    job("quick-c-6", &["0.05"], ""),
    // Longer than a lease.
    job("long-6", &["4.0"], ""),
    job("killed-5", &["2.6"], "on_lost = \"kill\""),
    // Failing, some so often that no attempt is left.
    job("flaky-4", &["0.1", "2", "0.1,0.1", "1,0"], ""),
    job("flaky-6", &["0.3", "3", "0.1,0.3,0.1", "1,2,0"], ""),
    job("hopeless-6", &["0.2", "4", "0.1", "1"], ""),
    job("hanging-6", &["0.1", "2", "9,0.1", "0,0"], "timeout = \"1s\""),
    // Going on when the next slot is due.
    job("allow-5", &["0.1", "3", "7", "0"], "concurrency = \"allow\""),
    job("forbid-4", &["0.1", "4", "6", "0"], "concurrency = \"forbid\""),
    job("replace-5", &["0.1", "3", "7", "0"], "concurrency = \"replace\""),
    job("alone-5", &["0.3"], "on_store_error = \"run\""),
    // Room for a takeover within the slot.
    job("slow-10", &["6.0"], ""),
    job("slow-12", &["5.0"], "on_lost = \"kill\""),
    // Two locks, in one order and in the other.
    job("lock-ab-4", &["0.3"], "").holds(&["db", "schema"], "lock_wait = \"1500ms\""),
    job("lock-ba-6", &["0.9"], "on_lost = \"kill\"").holds(&["schema", "db"], ""),
    // Those who read are in the way of these two.
    job("lock-read-5", &["0.5"], "").holds(&["schema:shared"], ""),
    job("lock-read-6", &["2.2"], "on_lost = \"kill\"").holds(&["schema:shared"], ""),
    // Two of three at once; one is longer than a lease, one fails first.
    job("lock-some-4", &["0.8"], "").holds(&["gpu:1/2"], ""),
    job("lock-some-5", &["0.3", "1", "0.3,0.3", "2,0"], "").holds(&["gpu:1/2"], ""),
    job("lock-some-6", &["2.6"], "").holds(&["gpu:1/2"], "lock_wait = \"3s\""),
];

/// A program that no daemon knows, started by `cronward lock` again and again.
pub(super) struct Outsider {
    pub(super) name: &'static str,
    /// What it asks for, with the flags.
    pub(super) words: &'static [&'static str],
    pub(super) nap: &'static str,
}

/// What their names begin with.
const OUTSIDE: &str = "out-";

/// One is killed when it loses its lock, and one goes on.
pub(super) const OUTSIDERS: &[Outsider] = &[
    Outsider { name: "out-a", words: &["db", "--ttl", "3s"], nap: "0.4" },
    Outsider {
        name: "out-b",
        words: &["gpu:1/2", "schema:shared", "--ttl", "2s", "--wait", "5s", "--on-lost", "continue"],
        nap: "1.0",
    },
];

/// The shortest lease that a busy machine renews in time.
pub(super) const LEASE_TTL: Duration = Duration::from_secs(2);
/// `lock_wait` of the job that waits least.
pub(super) const SHORTEST_LOCK_WAIT: Duration = Duration::from_millis(1_500);

/// What somebody holds of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) lock: &'static str,
    pub(super) weight: u32,
    /// The most that may be held beside it, itself included.
    pub(super) of: u32,
}

impl Share {
    fn of(word: &'static str) -> Self {
        let (lock, how) = word.split_once(':').unwrap_or((word, "1/1"));
        let number = |text: &str| text.parse().unwrap();
        let (weight, of) = how.split_once('/').map_or((1, u32::MAX), |(k, n)| (number(k), number(n)));
        Self { lock, weight, of }
    }

    /// As `jobs.toml` has it.
    fn toml(self) -> String {
        let Self { lock, weight, of } = self;
        match of {
            1 => format!("\"{lock}\""),
            u32::MAX => format!("{{ name = \"{lock}\", mode = \"shared\" }}"),
            _ => format!("{{ name = \"{lock}\", permits = {weight}, of = {of} }}"),
        }
    }
}

/// All locks that anybody asks for.
pub(super) const LOCKS: [&str; 3] = ["db", "schema", "gpu"];

/// What a job or an outsider holds whenever it runs, in the order in which it asks.
pub(super) fn shares(name: &str) -> Vec<Share> {
    let of_job = JOBS.iter().find(|job| job.name == name).map(|job| job.locks);
    let asked = || OUTSIDERS.iter().find(|outsider| outsider.name == name).map(|outsider| outsider.words);
    let words = of_job.or_else(asked).unwrap_or_default().iter();
    words.take_while(|word| !word.starts_with('-')).map(|word| Share::of(word)).collect()
}

/// Whether what it runs has to be dead before others may have what it held.
pub(super) fn is_killed_when_lost(name: &str) -> bool {
    let of_job = JOBS.iter().find(|job| job.name == name).map(|job| job.keys.contains("on_lost"));
    let of_outsider = || OUTSIDERS.iter().find(|it| it.name == name).is_some_and(|it| !it.words.contains(&"--on-lost"));
    of_job.unwrap_or_else(of_outsider)
}

/// Whether it is no job's.
pub(super) fn is_outside(name: &str) -> bool {
    name.starts_with(OUTSIDE)
}

/// The names of all jobs.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    JOBS.iter().map(|job| job.name)
}

/// The length of a job's slots.
pub(super) fn seconds(name: &str) -> u32 {
    name.rsplit('-').next().unwrap().parse().unwrap()
}

/// The longest slot.
pub(super) fn longest_slot() -> Duration {
    Duration::from_secs(names().map(|job| u64::from(seconds(job))).max().unwrap())
}

/// `jobs.toml`. `generation` is told to the commands, so that a reload finds another file.
pub(super) fn file(generation: u32, keeps_locks: bool) -> String {
    let lease = LEASE_TTL.as_secs();
    let mut text = format!(
        "[node]\ndrain = \"2s\"\n[defaults]\nslot = \"tick\"\nlease_ttl = \"{lease}s\"\nretry_delay = \"200ms\"\n\
         max_attempts = 3\nkill_after = \"500ms\"\ntimeout = \"20s\"\n\
         env = {{ LD_PRELOAD = \"\", GENERATION = \"{generation}\" }}\n"
    );
    for Job { name, args, keys, locks, lock_keys } in JOBS {
        let args: String = args.iter().map(|arg| format!(", \"{arg}\"")).collect();
        let every = seconds(name);
        let _ = write!(
            text,
            "[jobs.{name}]\nschedule = \"*/{every} * * * * *\"\ncommand = [\"/bin/bash\", \"./work.sh\"{args}]\n{keys}\n"
        );
        if keeps_locks && !locks.is_empty() {
            let locks: Vec<String> = locks.iter().map(|word| Share::of(word).toml()).collect();
            let _ = writeln!(text, "locks = [{}]\n{lock_keys}", locks.join(", "));
        }
    }
    text
}
