//! The words on the command line: read, and written for a world that is to be seen again. Runs nothing.

use std::ops::Range;
use std::path::PathBuf;

use simulate::{FaultSet, Limits, Options};

pub(crate) const USAGE: &str =
    "usage: simulate [--seeds A..B | --seed N | --slots N] [--trace] [--keep-going] [--no-shrink]
                [--nodes N] [--jobs N] [--periods N] [--faults all|none|a,b,c] [--bug NAME]
                [--fresh] [--lines N] [--journals] [--controls] [--json FILE]

  --seeds A..B   these worlds; --seed N one of them; --slots N as many as have so many slots
  --fresh        after the worlds that are the same each time (0..1000 unless --seeds says others), worlds from a seed on
                 that is drawn anew, and printed, until there are so many slots
  --trace        every step
  --journals     judge what the nodes of every world write, and not of the first worlds alone
  --keep-going   do not stop at the first world that breaks a promise
  --lines N      show a smallest world that has more steps by its last N, and write all of them to a file; 2000
  --no-shrink    do not look for the smallest world that still breaks it
  --controls     afterwards, put each bug in on purpose and look for it
  --json FILE    write what came of it as one JSON object, `-` for stdout";

/// What is asked for.
pub(crate) struct Args {
    pub(crate) seeds: Range<u64>,
    /// Go on with worlds that nobody has tried.
    pub(crate) fresh: bool,
    /// Stop after so many slots.
    pub(crate) slots: u64,
    pub(crate) options: Options,
    pub(crate) keep_going: bool,
    pub(crate) shrink: bool,
    /// Steps of the smallest world that are shown at the most.
    pub(crate) lines: usize,
    pub(crate) controls: bool,
    pub(crate) json: Option<PathBuf>,
}

pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut args = Args {
        seeds: 0..u64::MAX,
        fresh: false,
        slots: 1_000_000,
        options: Options::default(),
        keep_going: false,
        shrink: true,
        lines: 2_000,
        controls: false,
        json: None,
    };
    while let Some(word) = words.next() {
        take(&mut args, &word, &mut words)?;
    }
    Ok(args)
}

fn take(args: &mut Args, word: &str, words: &mut impl Iterator<Item = String>) -> Result<(), String> {
    let mut value = || words.next().ok_or_else(|| format!("{word} wants a value"));
    let limits = &mut args.options.limits;
    match word {
        "--seed" => {
            let seed = number(&value()?)?;
            (args.seeds, args.slots) = (seed..seed.saturating_add(1), u64::MAX);
        }
        "--seeds" => {
            let range = value()?;
            let (from, to) = range.split_once("..").ok_or("a range is written A..B")?;
            (args.seeds, args.slots) = (number(from)?..number(to)?, u64::MAX);
        }
        "--slots" => args.slots = number(&value()?)?,
        "--nodes" => limits.nodes = usize::try_from(number(&value()?)?).unwrap_or(usize::MAX),
        "--jobs" => limits.jobs = usize::try_from(number(&value()?)?).unwrap_or(usize::MAX),
        "--periods" => limits.periods = u32::try_from(number(&value()?)?).unwrap_or(u32::MAX),
        "--faults" => limits.faults = value()?.parse::<FaultSet>()?,
        "--bug" => args.options.bug = Some(value()?.parse()?),
        "--lines" => args.lines = usize::try_from(number(&value()?)?).unwrap_or(usize::MAX),
        "--fresh" => args.fresh = true,
        "--trace" => args.options.trace = true,
        "--journals" => args.options.journals = true,
        "--keep-going" => args.keep_going = true,
        "--no-shrink" => args.shrink = false,
        "--controls" => args.controls = true,
        "--json" => args.json = Some(value()?.into()),
        other => return Err(format!("unknown argument {other:?}")),
    }
    Ok(())
}

/// The whole command that shows this very world again, with all its limits, for a shell at the root of the repository.
pub(crate) fn replay(seed: u64, options: &Options) -> String {
    let mut line = format!("cargo run --release --quiet --package simulate -- --seed {seed} --trace --no-shrink");
    let Limits { nodes, jobs, periods, faults } = options.limits;
    let limits = [
        (nodes != usize::MAX).then(|| format!(" --nodes {nodes}")),
        (jobs != usize::MAX).then(|| format!(" --jobs {jobs}")),
        (periods != u32::MAX).then(|| format!(" --periods {periods}")),
        (faults != FaultSet::ALL).then(|| format!(" --faults {faults}")),
        options.bug.map(|bug| format!(" --bug {bug:?}")),
        options.journals.then(|| " --journals".to_owned()),
    ];
    line.extend(limits.into_iter().flatten());
    line
}

fn number(word: &str) -> Result<u64, String> {
    word.replace('_', "").parse().map_err(|_| format!("{word:?} is not a number"))
}
