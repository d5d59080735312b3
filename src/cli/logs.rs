//! `cronward logs J@S`: the output of one attempt.

use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::lookup;
use crate::cli::reference::SlotRef;
use crate::cli::session::Session;
use crate::cli::store_args::StoreArgs;
use crate::cli::text::{ending, harmless_lines};
use crate::observe::view::RunView;
use crate::slot::{Attempt, OutputTail, RunRecord, SlotRecord};

/// The output of an attempt; the last one when none is named
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward logs billing@-1 --attempt 2")]
pub(crate) struct Args {
    /// The slot: billing@2026-11-21T14Z, billing for the current one, billing@-1 for the one before
    #[arg(value_name = "JOB[@SLOT]")]
    pub(crate) slot: SlotRef,
    /// Which attempt [default: the last]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) attempt: Option<Attempt>,
    /// The attempt with its output as JSON with documented, stable fields
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Writes the output as it is; to a terminal, with everything escaped that could do more than show text.
pub(crate) async fn print(args: &Args, console: &mut Console) -> Result<(), Failure> {
    let session = Session::open(&args.store, console).await?;
    let (_, record) = lookup::find(&session, &args.slot).await?;
    let Some(mut run) = choose(&record, args.attempt)?.cloned() else {
        console.note(format_args!("{} has no attempt yet", record.slot));
        return if args.json { console.json(&None::<RunView>) } else { Ok(()) };
    };
    session.read_output(&record.slot, &mut run).await?;
    if args.json {
        return console.json(&RunView::of(&record, &run));
    }
    match &run.output {
        Some(output) if output.is_lost() => {
            console.note(format_args!("attempt {} of {}: output {}", run.attempt, record.slot, output.lost()));
            Ok(())
        }
        Some(output) if !output.text.is_empty() => write(output, console),
        _ => {
            let (attempt, slot) = (run.attempt, &record.slot);
            console.note(format_args!("attempt {attempt} of {slot} has no output ({})", ending(&record, &run)));
            Ok(())
        }
    }
}

/// The attempt that is asked for; none when the slot has no attempt at all.
fn choose(record: &SlotRecord, wanted: Option<Attempt>) -> Result<Option<&RunRecord>, Failure> {
    let Some(wanted) = wanted else { return Ok(record.runs.last()) };
    let found = record.runs.iter().find(|run| run.attempt == wanted);
    found.map(Some).ok_or_else(|| {
        let known: Vec<String> = record.runs.iter().map(|run| run.attempt.to_string()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Failure::Usage(format!("{} has no attempt {wanted}; there is {known}", record.slot))
    })
}

fn write(output: &OutputTail, console: &mut Console) -> Result<(), Failure> {
    if output.dropped_bytes > 0 {
        console.note(format_args!("the first {} bytes were not kept (output_limit)", output.dropped_bytes));
    }
    if !console.terminal {
        return console.print(&output.text);
    }
    for line in harmless_lines(&output.text) {
        console.print(&line)?;
        console.print("\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::fixture;

    const HOSTILE: &str = "a\x1b[2J\r\nb";

    fn written(terminal: bool, dropped_bytes: u64) -> (String, String) {
        let (mut console, out, err) = Console::captured(terminal);
        write(&OutputTail { text: HOSTILE.to_owned(), dropped_bytes }, &mut console).unwrap();
        (out.text(), err.text())
    }

    #[test]
    fn a_pipe_gets_the_output_as_it_is_and_a_terminal_nothing_that_could_harm_it() {
        assert_eq!(written(false, 0), (HOSTILE.to_owned(), String::new()));
        assert_eq!(written(true, 0), ("a\\x1b[2J\nb\n".to_owned(), String::new()));
    }

    #[test]
    fn a_dropped_head_is_told_beside_the_output() {
        let (out, err) = written(false, 4_096);
        assert_eq!(out, HOSTILE);
        assert_eq!(err, "the first 4096 bytes were not kept (output_limit)\n");
    }

    #[test]
    fn the_last_attempt_is_shown_unless_one_is_named() {
        let record = fixture::failed();
        let attempt = |wanted| choose(&record, wanted).map(|run| run.map(|run| run.attempt));
        assert_eq!(attempt(None).unwrap(), Some(3));
        assert_eq!(attempt(Some(1)).unwrap(), Some(1));
        assert_eq!(
            attempt(Some(9)).unwrap_err().to_string(),
            "billing@2026-11-21T12Z has no attempt 9; there is 1, 2, 3"
        );
        assert_eq!(choose(&fixture::untouched(), None).unwrap(), None);
    }
}
