//! Where a command writes: results to one stream, messages to the other. Nothing else in `cli` touches stdout or stderr.
//!
//! A part of a terminal can be drawn again in its place ([`Live`]), below what was written for good.

use std::fmt::Display;
use std::io::{self, BufRead, BufWriter, IsTerminal, Write};
use std::time::Duration;

use crossterm::Command;
use crossterm::cursor::MoveToPreviousLine;
use crossterm::terminal::{self, Clear, ClearType, DisableLineWrap, EnableLineWrap};
use serde::ser::SerializeSeq as _;
use serde::{Serialize, Serializer as _};

use crate::cli::failure::Failure;
use crate::clock::{Clock, SystemClock};
use crate::config::Diagnostics;
use crate::drive::timers;

/// How a listing is written.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// JSON with documented, stable fields
    #[arg(long)]
    pub(crate) json: bool,
    /// No colour; NO_COLOR in the environment does the same
    #[arg(long)]
    pub(crate) no_color: bool,
}

/// [`Console::error`] of a process that is about to end, from wherever it is.
pub(crate) fn last_error(message: impl Display) {
    // There is nobody else to tell.
    let _ = writeln!(io::stderr(), "error: {message}");
}

/// Notes that do not wait for whoever reads stderr, nor for a command's output on its way: told by a thread of their own, and waited for
/// so long. False where nobody has taken them by then; the thread may hang in its write as long as this process lasts.
pub(crate) async fn told_within(lines: Vec<String>, span: Duration) -> bool {
    let telling = tokio::task::spawn_blocking(move || {
        for line in lines {
            // There is nobody else to tell.
            let _ = writeln!(io::stderr(), "{line}");
        }
    });
    let due = SystemClock.now().mono + span;
    tokio::select! {
        _ = telling => true,
        () = timers::until(&SystemClock, Some(due)) => false,
    }
}

/// The same for one line that nobody waits for.
pub(crate) fn tell_aside(line: String) {
    drop(tokio::task::spawn_blocking(move || writeln!(io::stderr(), "{line}")));
}

/// The two streams, and what is known of the first.
pub(crate) struct Console {
    out: Box<dyn Write>,
    err: Box<dyn Write>,
    /// A person who can be asked; none when nobody would read the question or write the answer.
    person: Option<Box<dyn BufRead>>,
    /// Whether a person looks at the results. Without one they are plain and never wrapped.
    pub(crate) terminal: bool,
    /// Whether results may be coloured.
    pub(crate) color: bool,
    /// Whether what was written can be overwritten: a terminal that can move its cursor.
    pub(crate) lively: bool,
}

impl Console {
    /// This process's own streams. Colour only on a terminal that can, and never with `NO_COLOR` (no-color.org).
    pub(crate) fn of_process() -> Self {
        let terminal = io::stdout().is_terminal();
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").is_some_and(|term| term == "dumb");
        let refused = set("NO_COLOR").is_some() || dumb;
        let person = io::stdin().is_terminal() && io::stderr().is_terminal();
        Self {
            person: person.then(|| Box::new(io::stdin().lock()) as Box<dyn BufRead>),
            out: Box::new(BufWriter::new(io::stdout())),
            err: Box::new(io::stderr()),
            terminal,
            color: terminal && !refused,
            lively: terminal && !dumb,
        }
    }

    /// Both streams, and whether results may be coloured; for what writes by itself.
    pub(crate) fn streams(&mut self) -> (&mut dyn Write, &mut dyn Write, bool) {
        (&mut self.out, &mut self.err, self.color)
    }

    /// Writes a result as it is.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), Failure> {
        Ok(self.out.write_all(text.as_bytes())?)
    }

    /// Writes one JSON document and a line end.
    pub(crate) fn json<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        serde_json::to_writer_pretty(&mut self.out, value).map_err(io::Error::from)?;
        Ok(self.out.write_all(b"\n")?)
    }

    /// Writes one JSON array and a line end. Each element is made when it is written, and not kept.
    pub(crate) async fn json_array<T, E: Serialize>(
        &mut self,
        items: Vec<T>,
        element: impl AsyncFn(T) -> Result<E, Failure>,
    ) -> Result<(), Failure> {
        let mut serializer = serde_json::Serializer::pretty(&mut self.out);
        let mut array = serializer.serialize_seq(None).map_err(io::Error::from)?;
        for item in items {
            array.serialize_element(&element(item).await?).map_err(io::Error::from)?;
        }
        array.end().map_err(io::Error::from)?;
        Ok(self.out.write_all(b"\n")?)
    }

    /// Writes one JSON document on a line of its own, and hands it on: somebody waits for it.
    pub(crate) fn json_line<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.out, value).map_err(io::Error::from)?;
        self.out.write_all(b"\n")?;
        self.flush()
    }

    /// Tells something beside the result. Nobody can be told that this failed.
    pub(crate) fn note(&mut self, message: impl Display) {
        let _ = writeln!(self.err, "{message}");
    }

    /// Warns. See [`Console::note`].
    pub(crate) fn warn(&mut self, message: impl Display) {
        self.note(format_args!("warning: {message}"));
    }

    /// Tells why the command failed. See [`Console::note`].
    pub(crate) fn error(&mut self, message: impl Display) {
        self.note(format_args!("error: {message}"));
    }

    /// Asks a question that is answered with yes or no; everything but a clear yes is no. None when nobody can be asked.
    pub(crate) fn ask(&mut self, question: &str) -> Result<Option<bool>, Failure> {
        let Some(person) = &mut self.person else { return Ok(None) };
        write!(self.err, "{question}")?;
        self.err.flush()?;
        let mut answer = String::new();
        person.read_line(&mut answer)?;
        Ok(Some(["y", "yes"].contains(&answer.trim().to_lowercase().as_str())))
    }

    /// Tells everything that was found in a file, with its source lines.
    pub(crate) fn report(&mut self, report: &Diagnostics) {
        self.note(report.render(false).trim_end());
    }

    /// Hands everything on to the reader.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! A console whose two streams can be read.

    use std::sync::{Arc, Mutex};

    use super::*;

    /// One stream.
    #[derive(Clone, Default)]
    pub(crate) struct Pipe(Arc<Mutex<Vec<u8>>>);

    impl Pipe {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Console {
        /// A console like a pipe (`terminal` false) or like a terminal without colour, with its stdout and stderr.
        pub(crate) fn captured(terminal: bool) -> (Self, Pipe, Pipe) {
            let (out, err) = (Pipe::default(), Pipe::default());
            let (color, lively) = (false, terminal);
            let (stdout, stderr) = (Box::new(out.clone()), Box::new(err.clone()));
            let console = Self { out: stdout, err: stderr, person: None, terminal, color, lively };
            (console, out, err)
        }

        /// Puts a person there who types this; nobody for none.
        pub(crate) fn answers(&mut self, typed: Option<&str>) {
            self.person = typed.map(|text| Box::new(io::Cursor::new(text.to_owned())) as Box<dyn BufRead>);
        }
    }
}

/// Rows of a terminal that does not say how many it has.
const ROWS: u16 = 24;

/// What stands at the lower end of the terminal.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// Lines that were drawn and may be overwritten.
    drawn: u16,
}

impl Live {
    /// Draws these lines in place of the last ones. Those that do not fit the terminal are counted instead.
    pub(crate) fn draw(&mut self, lines: &[String], console: &mut Console) -> Result<(), Failure> {
        let rows = terminal::size().map_or(ROWS, |(_, rows)| rows);
        let frame = self.frame(&fitted(lines, rows));
        console.print(&frame)?;
        console.flush()
    }

    /// Writes lines that stay, above what is drawn next.
    pub(crate) fn leave(&mut self, lines: &[String], console: &mut Console) -> Result<(), Failure> {
        let frame = self.frame(lines);
        self.drawn = 0;
        console.print(&frame)
    }

    /// One write: nothing flickers, and lines that are too long are cut and not wrapped, so that they can be counted.
    fn frame(&mut self, lines: &[String]) -> String {
        let mut frame = String::new();
        if self.drawn > 0 {
            ansi(&MoveToPreviousLine(self.drawn), &mut frame);
        }
        ansi(&DisableLineWrap, &mut frame);
        for line in lines {
            frame.push_str(line);
            ansi(&Clear(ClearType::UntilNewLine), &mut frame);
            frame.push('\n');
        }
        ansi(&Clear(ClearType::FromCursorDown), &mut frame);
        ansi(&EnableLineWrap, &mut frame);
        self.drawn = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        frame
    }
}

/// As many lines as a terminal of so many rows can show with its cursor below them.
fn fitted(lines: &[String], rows: u16) -> Vec<String> {
    let room = usize::from(rows).saturating_sub(1).max(1);
    if lines.len() <= room {
        return lines.to_vec();
    }
    let shown = room - 1;
    let hidden = format!("… and {} more lines", lines.len() - shown);
    lines.iter().take(shown).cloned().chain([hidden]).collect()
}

/// Writing to a string cannot fail.
fn ansi(command: &impl Command, frame: &mut String) {
    let _ = command.write_ansi(frame);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> Vec<String> {
        (1..=count).map(|number| format!("line {number}")).collect()
    }

    #[test]
    fn the_next_frame_begins_where_the_last_one_did() {
        let mut live = Live::default();
        assert!(!live.frame(&lines(2)).contains("\x1b[2F"), "nothing stands there yet");
        assert!(live.frame(&lines(3)).starts_with("\x1b[2F"));
        assert!(live.frame(&lines(1)).starts_with("\x1b[3F"), "fewer lines than before");
    }

    #[test]
    fn what_stays_is_not_overwritten() {
        let (mut console, out, _) = Console::captured(true);
        let mut live = Live::default();
        live.frame(&lines(2));
        live.leave(&lines(1), &mut console).unwrap();
        assert!(out.text().starts_with("\x1b[2F"), "it takes the place of what was drawn");
        assert!(!live.frame(&lines(2)).contains('F'), "and is not counted as drawn");
    }

    #[test]
    fn a_frame_leaves_the_terminal_as_it_was() {
        let frame = Live::default().frame(&lines(1));
        assert!(frame.contains("\x1b[?7l") && frame.ends_with("\x1b[?7h"), "{frame:?}");
    }

    #[test]
    fn lines_without_room_are_counted() {
        assert_eq!(fitted(&lines(4), 5), lines(4));
        assert_eq!(fitted(&lines(6), 5), ["line 1", "line 2", "line 3", "… and 3 more lines"]);
        assert_eq!(fitted(&lines(6), 0), ["… and 6 more lines"]);
    }
}
