//! A part of the terminal that is drawn again in its place, below what was written for good. It never scrolls, wraps or
//! leaves the terminal in another state than it found it in: whoever is interrupted has nothing to put right.

use crossterm::Command;
use crossterm::cursor::MoveToPreviousLine;
use crossterm::terminal::{self, Clear, ClearType, DisableLineWrap, EnableLineWrap};

use crate::cli::console::Console;
use crate::cli::failure::Failure;

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
