//! The jobs of a chaos run, and the command by which each run records itself.

use std::fmt::Write as _;
use std::time::Duration;

/// `work.sh NAP [EVERY NAPS CODES]`: takes NAP seconds and exits well; in every EVERYth slot of the job attempt n takes the
/// n-th of NAPS and exits with the n-th of CODES, the last of them for all that follow. Start and end go to one file, each
/// one write with O_APPEND. It starts no other process: a run costs one bash. Naps are reads of a pipe that nobody writes.
pub(super) const SCRIPT: &str = r#"#!/bin/bash
cd "${0%/*}" || exit 90
nap=$1 code=0 slot=$((CRONWARD_FENCE / 1000))
if [[ $2 && $((slot / ${CRONWARD_JOB##*-} % $2)) = 0 ]]; then
    IFS=, read -ra naps <<<"$3"
    IFS=, read -ra codes <<<"$4"
    n=$((CRONWARD_ATTEMPT > 0 ? CRONWARD_ATTEMPT - 1 : 0))
    nap=${naps[n < ${#naps[@]} ? n : -1]} code=${codes[n < ${#codes[@]} ? n : -1]}
fi
alive=alive/$CRONWARD_JOB@$CRONWARD_SLOT overlap=false
if [[ -e $alive ]] && read -r before <"$alive" && kill -0 "$before" 2>&-; then overlap=true; fi
echo $$ >"$alive"
record() {
    printf '{"event":"%s","job":"%s","slot":"%s","attempt":%s,"fence":%s,"node":"%s","pid":%s,"overlap":%s,"at_ms":%s}\n' \
        "$1" "$CRONWARD_JOB" "$CRONWARD_SLOT" "$CRONWARD_ATTEMPT" "$CRONWARD_FENCE" "$CRONWARD_NODE" $$ "$overlap" \
        "$((${EPOCHREALTIME/[.,]/} / 1000))" >>work.jsonl
}
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
}

const fn job(name: &'static str, args: &'static [&'static str], keys: &'static str) -> Job {
    Job { name, args, keys }
}

/// What their names begin with: always done by the first attempt, and soon.
pub(super) const QUICK: &str = "quick-";

const JOBS: &[Job] = &[
    job("quick-a-2", &["0.05"], ""),
    job("quick-b-2", &["0.2"], ""),
    job("quick-a-3", &["0.1"], ""),
    job("quick-b-3", &["0.02"], ""),
    job("quick-4", &["0.05"], ""),
    job("quick-5", &["0.5"], ""),
    // These two are kept by the servers of a cluster that keep no other job so soon done and so long due.
    job("quick-b-6", &["0.05"], ""),
    job("quick-c-6", &["0.05"], ""),
    // Longer than a lease.
    job("long-5", &["2.6"], ""),
    job("long-6", &["4.0"], ""),
    job("killed-5", &["2.6"], "on_lost = \"kill\""),
    job("killed-6", &["0.3"], "on_lost = \"kill\""),
    // Failing, some so often that no attempt is left.
    job("flaky-4", &["0.1", "2", "0.1,0.1", "1,0"], ""),
    job("flaky-5", &["0.1", "1", "0.1,0.1", "2,0"], ""),
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
];

/// The shortest lease that a busy machine renews in time.
pub(super) const LEASE_TTL: Duration = Duration::from_secs(2);

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
pub(super) fn file(generation: u32) -> String {
    let lease = LEASE_TTL.as_secs();
    let mut text = format!(
        "[node]\ndrain = \"2s\"\n[defaults]\nslot = \"tick\"\nlease_ttl = \"{lease}s\"\nretry_delay = \"200ms\"\n\
         max_attempts = 3\nkill_after = \"500ms\"\ntimeout = \"20s\"\n\
         env = {{ LD_PRELOAD = \"\", GENERATION = \"{generation}\" }}\n"
    );
    for Job { name, args, keys } in JOBS {
        let args: String = args.iter().map(|arg| format!(", \"{arg}\"")).collect();
        let every = seconds(name);
        let _ = write!(
            text,
            "[jobs.{name}]\nschedule = \"*/{every} * * * * *\"\ncommand = [\"/bin/bash\", \"./work.sh\"{args}]\n{keys}\n"
        );
    }
    text
}
