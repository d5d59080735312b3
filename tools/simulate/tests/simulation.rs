//! Clusters in virtual time keep their promises under every fault, and each bug that is put in on purpose is found.
//!
//! This is the short form; `make sim` runs as many slots as CI wants, in a release build, and `make sim-long` millions.

#![allow(clippy::print_stdout, reason = "what was simulated is told")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test says what it expects"
)]

#[path = "../src/bin/simulate/args.rs"]
#[allow(dead_code, reason = "what the program is asked for, of which a test wants a part")]
mod args;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use simulate::{
    ADDED_FROM, BrokenPromise, Bug, Check, Control, Fault, LOCKS_FROM, Limits, OUTPUTS_FROM, Options, SHORT_FROM,
    Summary, WorldOutcome, control, is_short, run, shrink,
};

fn world(seed: u64, options: &Options) -> WorldOutcome {
    run(seed, options).unwrap()
}

/// How to see a finding again.
fn shown(seed: u64, finding: &BrokenPromise) -> String {
    let options = Options { journals: finding.check == Check::Journals, ..Options::default() };
    let smallest = shrink(seed, options, finding.check).options;
    format!("seed {seed}: {finding}\n  smallest: {}", args::replay(seed, &smallest))
}

/// Worlds whose nodes write journals, which the checker judges as well.
const JUDGED: u64 = 150;

fn keep(seeds: std::ops::Range<u64>) -> Summary {
    let mut summary = Summary::default();
    for seed in seeds {
        let judged = seed < JUDGED || (seed >= LOCKS_FROM && !is_short(seed));
        let outcome = world(seed, &Options { journals: judged, ..Options::default() });
        if let Some(finding) = &outcome.finding {
            panic!("{}", shown(seed, finding));
        }
        summary.add(&outcome.summary);
    }
    summary
}

#[test]
fn every_world_keeps_its_promises() {
    let summary = keep(0..400);
    println!("{summary}");
    let classes = summary.classes;
    assert!(classes.slots > 10_000);
    assert!(summary.judged > 60 && summary.judged_slots > 2_000, "{summary}");
    // Worlds in which nothing goes wrong would prove nothing.
    for (what, count) in [
        ("retried", classes.retried),
        ("repeated", classes.repeated),
        ("overlapped", classes.overlapped),
        ("failed", classes.failed),
        ("missed", classes.missed),
        ("changes of the clock", summary.changes_of_offset),
    ] {
        assert!(count > 20, "{what}: {count}");
    }
    let of_outputs = 1;
    assert_eq!(summary.faults.len(), simulate::Fault::ALL.len() - of_outputs, "{:?}", summary.faults);
}

/// As in `make sim`, which has more of them.
#[test]
fn worlds_whose_slots_are_shorter_than_their_outages_keep_their_promises() {
    let summary = keep(SHORT_FROM..SHORT_FROM + 60);
    println!("{summary}");
    assert!((12..=30).contains(&summary.short), "about a third: {summary}");
    assert!(summary.classes.slots > 4_000, "{summary}");
    assert_eq!(keep(0..20).short, 0, "the worlds of seeds that were kept before stay what they were");
}

/// The same.
#[test]
fn worlds_whose_jobs_name_locks_keep_their_promises() {
    let summary = keep(LOCKS_FROM..LOCKS_FROM + 150);
    println!("{summary}");
    assert!((50..=100).contains(&summary.locked), "about half: {summary}");
    let classes = summary.classes;
    assert!(classes.slots > 10_000 && summary.judged > 40, "{summary}");
    for (what, count) in
        [("waited", classes.queued), ("waited in vain", classes.in_vain), ("lost their locks", classes.locks_lost)]
    {
        assert!(count > 20, "{what}: {count}");
    }
    assert_eq!(keep(0..20).locked, 0, "the worlds of seeds that were kept before stay what they were");
    assert_eq!(keep(SHORT_FROM..SHORT_FROM + 20).locked, 0);
}

#[test]
fn worlds_whose_store_refuses_outputs_record_every_end() {
    let summary = keep(OUTPUTS_FROM..OUTPUTS_FROM + 150);
    println!("{summary}");
    let refused = summary.faults.get(Fault::ContentRefused.as_str()).copied().unwrap_or_default();
    assert!(refused > 500 && summary.classes.slots > 5_000, "{refused} refused: {summary}");
    assert!(!keep(LOCKS_FROM..LOCKS_FROM + 20).faults.contains_key(Fault::ContentRefused.as_str()));
}

/// A job that is added while a slot lasts, also beside a store that comes back empty.
#[test]
fn worlds_to_which_a_job_is_added_keep_their_promises() {
    let summary = keep(ADDED_FROM..ADDED_FROM + 100);
    println!("{summary}");
    assert!(summary.classes.slots > 5_000 && summary.faults["wipe"] > 20, "{summary}");
}

/// Worlds that broke a promise before the code was mended; what each had found stands beside it.
const MENDED: &[(u64, &str)] = &[
    (1, "after a reload nobody looked at the current slot again"),
    (5, "a run of an hour's slot was not among those that forbid a start"),
    (18, "a hint that came while a claim was on its way was forgotten"),
    (36, "a node that died at the end of a slot and was back at once left it without a verdict"),
    (121, "a late copy of a claim was granted although its run was over"),
    (666, "a run without a guard began before its slot, at a node whose clock had been put right meanwhile"),
    (729, "an attempt that was overtaken by one that came and went was told of nothing"),
    (2403, "a first contact that was long in coming began with the slot of that moment"),
    (4208, "a node that left 20 to 60 s after the end of a slot that it still ran left it without a verdict"),
    (5352, "the judge took a run for a later one although a late copy had put its record back"),
    (7935, "a slot that was let go by a wrong clock while the store was away was not looked at again"),
    (8902, "a replaced store acknowledged what its successor never heard of, after the word that hints were lost"),
    (11566, "a clock that was put right did not tell the guards when their slots end"),
    (
        20631,
        "a verdict was asked for twice at a time, and the answer that said who recorded it was the one that was lost",
    ),
    (29525, "an attempt that a smaller number had followed was set again, and both times the answer was lost"),
    (48750, "the judge asked for a renewal after the end of a slot, of a lease that a late copy had set again"),
    (66542, "a lease was to be renewed that a late copy had set again after its run had failed"),
    (74967, "a node that stood still counted the time that an answer named from when it read it"),
    (96852, "a node that stood still ran beside its own older run, which had outlasted the limits of its job"),
    (120528, "an overlap was to be told although the store had lost, in a second loss, all that it knew of it"),
    (143863, "the shadow kept the time of a grant where a renewal that restores writes that of its holder"),
    (145985, "numbers began anew after a loss, and whoever was followed by a smaller one was told of nothing"),
    (153574, "a node whose clock was ahead cut its wait after a failure at the slot's end, and had the retry itself"),
    (
        9012961,
        "a node that began as a slot ended took the slot for over by a clock put right with too little regard to doubt",
    ),
    (
        20001090,
        "a late copy of a claim prolonged a lease beyond what its node could know of, and the law blamed the node",
    ),
    (20000072, "looks just before the end at a slot that another blocked were granted what could only be given back"),
    (
        20008152,
        "the law asked for verdicts of slots from before the store first saw their job, which all their nodes had left",
    ),
    (40003126, "a node that stood still after a success told no job as left behind, and died"),
    (707402336838, "claims that nobody answered kept a lease alive for a lease_ttl after their node had given up"),
    (707402336855, "looks at the end of a slot were granted just before it, and kept out the slot that began then"),
    (707402341932, "the same, by one node alone: slot after slot"),
    (
        50010422,
        "a node that had stood still asked for a lease as long as that, again and again, and kept the job's next slots out",
    ),
    (60009421, "the judge held a node to its wait that had just failed to start the command"),
    (70018867, "the judge held a node to a lease that a late copy of its claim was granted"),
    (60009121, "a job that was added while the clock was ahead had slots without a verdict"),
    (
        265024555568,
        "a node that began before any heartbeat had arrived said it owed no verdict, and hid what an older one owed that died",
    ),
    (2000100000889, "the judge took a job for idle whose command was about to be started, as its locks had come free"),
    (
        2025240415336,
        "a copy of a request that came right after its release stood in a queue, and the law blamed the node",
    ),
];

/// The same of the checker of journals.
const MENDED_BY_JOURNALS: &[(u64, &str)] = &[
    (336, "an attempt was given back without an answer, and may count or not"),
    (880, "a node died with the only attempt that the files of the others allow, and its own allowed more"),
    (
        2000000000295,
        "the only node left was back in touch with its store, and died with an attempt that it had no time to hear of",
    ),
    (2000000000425, "whoever closed the slot had read a file since its end that allows more attempts"),
    (2000000000689, "an attempt that waited for its locks was given back, and nobody was left to hear the answer"),
    (2000000000648, "a node that stood still past its time to leave left without a word of how its commands had ended"),
    (2000000001079, "a node died with an attempt before it knew that it had reached its store"),
    (2000000001104, "a node died with an attempt before anything showed how far its clock was ahead"),
    (2000000001284, "a retry began before the run that it followed, by clocks that differ by less than they may"),
    (2000000001286, "a node that stood still gave its attempt back after the lease had lapsed, so it counted"),
    (2000000001470, "a node died in the instant in which it gave its attempt back that waited for its locks"),
    (2000000002403, "a node that stood still heard of its grant after the lease had lapsed: given back, it counted"),
    (2000000002513, "the node was gone when its attempt was given back: the next grant showed that it did not count"),
    (2000000002542, "a failover forgot that an attempt was given back"),
    (2000000002713, "a node that had begun to leave closed a slot, and was gone before it heard of that"),
    (2000000002733, "a failover forgot that an attempt was given back, after the slot's end"),
    (
        4000000000125,
        "a tick that was armed by a clock that is behind was fired when it was put right, though the job was new since the tick",
    ),
    (
        2000000002748,
        "a node whose clock is behind put it right, and died with an attempt of a tick that it was not late for",
    ),
];

#[test]
fn worlds_that_once_broke_a_promise_keep_it() {
    let judged = MENDED_BY_JOURNALS.iter().map(|kept| (kept, true));
    for ((seed, found), journals) in MENDED.iter().map(|kept| (kept, false)).chain(judged) {
        let outcome = world(*seed, &Options { journals, ..Options::default() });
        if let Some(finding) = &outcome.finding {
            panic!("{}\n  once: {found}", shown(*seed, finding));
        }
    }
}

/// A check that no bug trips would prove nothing.
#[test]
fn each_bug_that_is_put_in_on_purpose_is_found_and_each_check_finds_one() {
    // Written directly, so that the log says which check caught which bug also where all is well.
    let mut log = std::io::stderr();
    let (mut caught, mut unseen) = (BTreeSet::new(), Vec::new());
    for bug in Bug::ALL.iter().copied() {
        let found = control(bug, bug.within()).unwrap();
        let Control { seed, slots, finding, judged, .. } =
            found.unwrap_or_else(|| panic!("{bug:?} was not found within {} worlds", bug.within()));
        let (check, text) = (finding.check, finding.text);
        writeln!(log, "{bug:?}: found by {check:?} in world {seed}, after {slots} slots: {text}").unwrap();
        caught.insert(check);
        match judged {
            Some((seed, text)) => writeln!(log, "  by the journals in world {seed}: {text}").unwrap(),
            None => unseen.push(bug),
        }
    }
    // What the world's own judge lets pass and the checker does not has a test of its own.
    caught.insert(Check::Journals);
    assert_eq!(caught, Check::ALL.iter().copied().collect());
    unseen.retain(|bug| !UNSEEN.contains(bug));
    assert_eq!(unseen, [], "the journals showed these before");
}

/// Bugs that need not show in any line of these worlds' journals, by what they are: an answer that is asked for twice or comes too
/// soon, what is kept too long, a lease that nobody else came to take, a fault that another one excuses.
const UNSEEN: &[Bug] = &[
    // Three of 800 worlds showed it by a verdict that was missing for another reason, which no world has any more.
    Bug::ClosedBeforeItsOwnToken,
    Bug::OwesFromBefore,
    Bug::RegistersAnew,
    Bug::TokenIgnored,
    Bug::OthersIgnored,
    Bug::RenewsAnybodys,
    Bug::CounterWithoutTtl,
    Bug::ClosedAgain,
    Bug::ClockStops,
    Bug::RenewsAtTheTtl,
    Bug::WatchdogOutlivesTheRun,
    Bug::TimersFireAtOnce,
    Bug::Mute,
    Bug::NeverDoneAgain,
    Bug::LocksKeptInRetry,
    Bug::LocksNotReleased,
    Bug::LocksNeverLost,
    Bug::OutputInsistedOn,
];

/// The first world in which only the journals show that a node looks too late.
fn seen_by_journals_alone() -> u64 {
    let finds = |seed: u64, journals| world(seed, &Options { journals, ..late() }).finding.is_some();
    (0..200).find(|seed| !finds(*seed, false) && finds(*seed, true)).expect("a world")
}

fn late() -> Options {
    Options { bug: Some(Bug::LooksLate), ..Options::default() }
}

/// The first world in which the world's own judge finds a bug that its journals do not show.
fn seen_by_the_judge_alone(bug: Bug) -> u64 {
    let is_one = |seed: &u64| {
        let outcome = world(*seed, &Options { bug: Some(bug), journals: true, ..Options::default() });
        outcome.finding.is_some_and(|finding| finding.check != Check::Journals)
            && outcome.judged.is_some_and(|judged| judged.text.is_none())
    };
    (0..200).find(is_one).expect("a world")
}

/// Half a second is within what the world's own judge allows there; by the journals it is too late.
#[test]
fn what_the_nodes_wrote_is_judged_by_the_checker_of_journals_too() {
    let outcome = world(seen_by_journals_alone(), &Options { journals: true, ..late() });
    let finding = outcome.finding.unwrap();
    assert_eq!(finding.check, Check::Journals);
    assert!(finding.text.starts_with("late-recovery of "), "{finding}");
    assert_eq!(outcome.judged.unwrap().text, Some(finding.text));
}

#[test]
fn a_seed_is_one_history() {
    for seed in 0..20 {
        let (once, again) = (world(seed, &Options::default()), world(seed, &Options::default()));
        let traced = world(seed, &Options { trace: true, journals: true, ..Options::default() });
        assert_eq!((once.fingerprint, &once.summary), (again.fingerprint, &again.summary), "{seed}");
        let Summary { judged, judged_slots, .. } = once.summary;
        let summary = Summary { judged, judged_slots, ..traced.summary };
        assert_eq!((once.fingerprint, &once.summary), (traced.fingerprint, &summary), "{seed}");
        assert!(once.trace.is_empty() && !traced.trace.is_empty());
    }
    assert_ne!(world(1, &Options::default()).fingerprint, world(2, &Options::default()).fingerprint);
}

#[test]
fn a_broken_world_is_cut_down_to_one_that_breaks_the_same_promise() {
    let options = Options { bug: Some(Bug::DoneIsNotAbsorbing), ..Options::default() };
    let (seed, finding) = (0..50).find_map(|seed| Some((seed, world(seed, &options).finding?))).unwrap();
    let smallest = shrink(seed, options, finding.check).options;
    let again = world(seed, &smallest).finding.unwrap();
    assert_eq!(again.check, finding.check);
    assert!(smallest.limits != Limits::NONE && smallest.limits.periods <= 24, "{:?}", smallest.limits);
    assert_eq!(smallest.limits.faults.to_string().parse(), Ok(smallest.limits.faults));
}

/// What the program prints, and whether it found nothing wrong.
fn simulate(folder: &Path, words: &[&str]) -> (String, bool) {
    let program = env!("CARGO_BIN_EXE_simulate");
    let output = Command::new(program).args(words).current_dir(folder).output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.success())
}

/// The promise that the smallest world breaks, the words after `--` of the command that shows it again, and its history.
fn smallest(printed: &str) -> (&str, Vec<&str>, Vec<&str>) {
    let (_, rest) = printed.split_once("\n  smallest: ").unwrap();
    let (finding, rest) = rest.split_once("\n  again: ").unwrap();
    let (command, _) = rest.split_once('\n').unwrap();
    let (program, words) = command.split_once(" -- ").unwrap();
    assert!(program.starts_with("cargo run ") && program.ends_with(" --package simulate"), "{program}");
    // The figures of all worlds come next.
    let lines = rest.lines().take_while(|line| !line.ends_with("  worlds"));
    let steps = lines.filter_map(|line| line.strip_prefix("    "));
    (finding, words.split(' ').collect(), steps.collect())
}

#[test]
fn the_smallest_world_is_shown_from_its_beginning_and_the_command_that_is_printed_shows_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let (printed, clean) = simulate(folder.path(), &["--seeds", "0..50", "--bug", "FailureIsDone"]);
    let (finding, words, steps) = smallest(&printed);
    assert!(!clean && steps.len() > 100, "too short to show anything: {} steps", steps.len());
    let (again, clean) = simulate(folder.path(), &words);
    assert!(!clean && again.contains(&format!(": {finding}\n")), "{words:?} show another world: {again}");
    let history: Vec<&str> = again.lines().take(steps.len()).collect();
    assert!(steps == history, "{words:?} show another history: {again}");
}

#[test]
fn a_history_that_is_too_long_to_be_shown_is_in_a_file_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (printed, _) = simulate(folder.path(), &["--seeds", "0..50", "--bug", "FailureIsDone", "--lines", "50"]);
    let (_, words, steps) = smallest(&printed);
    let (_, named) = printed.split_once(" steps, is in ").unwrap();
    let (name, _) = named.split_once("; its end:\n").unwrap();
    let file = std::fs::read_to_string(folder.path().join(name)).unwrap();
    let whole: Vec<&str> = file.lines().collect();
    assert!(steps.len() == 50 && whole.len() > 100 && whole.ends_with(&steps), "{} of {}", steps.len(), whole.len());
    let (again, _) = simulate(folder.path(), &words);
    assert!(again.starts_with(&file));
}

#[test]
fn the_command_that_shows_a_world_again_has_all_its_limits() {
    let limits = Limits { nodes: 2, jobs: 1, periods: 5, faults: "crash,delay".parse().unwrap() };
    for limits in [Limits::NONE, limits, Limits { faults: simulate::FaultSet::NONE, ..Limits::NONE }] {
        for (bug, journals) in [(None, true), (Some(Bug::Mute), false)] {
            let command = args::replay(7, &Options { limits, bug, trace: false, journals });
            let words = command.split_once(" -- ").unwrap().1.split(' ').map(str::to_owned);
            let read = args::parse(words).unwrap();
            assert_eq!((read.seeds, read.options.limits), (7..8, limits), "{command}");
            assert_eq!((read.options.bug, read.options.journals), (bug, journals), "{command}");
            assert!(read.options.trace && !read.shrink, "{command}");
        }
    }
}

/// A seed that nobody has tried finds what the others do not; what is printed repeats it.
#[test]
fn fresh_seeds_follow_the_kept_ones_differ_each_time_and_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let figures = |words: &[&str]| -> (String, serde_json::Value) {
        let words = [words, &["--no-shrink", "--json", "figures.json"]].concat();
        let (printed, _) = simulate(folder.path(), &words);
        let text = std::fs::read_to_string(folder.path().join("figures.json")).unwrap();
        (printed, serde_json::from_str(&text).unwrap())
    };
    let drawn = || {
        let (printed, figures) = figures(&["--seeds", "0..2", "--fresh", "--slots", "200"]);
        assert_eq!(figures["seeds"], serde_json::json!([0, 2]), "{printed}");
        let [first, next] = [0, 1].map(|place| figures["fresh"][place].as_u64().unwrap());
        let said = printed.lines().next().unwrap_or_default();
        assert_eq!(said, format!("worlds 0..2, then fresh ones from the seed {first} on"));
        assert!(
            first >= LOCKS_FROM && first < next && printed.contains(&format!("--seeds {first}..{next} ")),
            "{printed}"
        );
        (first, next, figures["slots"].as_u64().unwrap())
    };
    let ((first, next, slots), (other, ..)) = (drawn(), drawn());
    assert_ne!(first, other);
    let slots_of = |range: String| figures(&["--seeds", &range]).1["slots"].as_u64().unwrap();
    assert_eq!(slots_of("0..2".to_owned()) + slots_of(format!("{first}..{next}")), slots);
}

#[test]
fn worlds_of_which_the_two_judges_say_different_things_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        (1, None, 0),
        (0, Some("FailureIsDone"), 0),
        // Only the journals show it; only the world's own judge sees it.
        (seen_by_journals_alone(), Some("LooksLate"), 1),
        (seen_by_the_judge_alone(Bug::WatchdogOutlivesTheRun), Some("WatchdogOutlivesTheRun"), 1),
    ];
    for (seed, bug, disagreements) in cases {
        let seed = seed.to_string();
        let mut words = vec!["--seed", &*seed, "--no-shrink", "--json", "figures.json"];
        words.extend(bug.into_iter().flat_map(|bug| ["--bug", bug]));
        let (printed, _) = simulate(folder.path(), &words);
        let figures = std::fs::read_to_string(folder.path().join("figures.json")).unwrap();
        let figures: serde_json::Value = serde_json::from_str(&figures).unwrap();
        assert_eq!(figures["judged"]["worlds"], 1, "{printed}");
        assert_eq!(figures["judged"]["disagreements"], disagreements, "{bug:?}: {printed}");
    }
}
