//! Tables as people know them from `kubectl` and `systemctl`: a header in capitals, columns two spaces apart, no rules.

use std::fmt::Display;

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table, presets};

use crate::admin::words::missed_after;
use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::slot::SlotState;
use crate::text::harmless;

/// A table under construction.
pub(crate) struct Grid {
    table: Table,
    columns: usize,
}

impl Grid {
    /// A table with these column names. On a terminal it is fitted to its width; elsewhere nothing is ever wrapped, so
    /// that one line stays one row for `grep` and `awk`.
    pub(crate) fn new(console: &Console, columns: &[&str]) -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        if console.terminal {
            table.set_content_arrangement(ContentArrangement::Dynamic);
        } else {
            table.force_no_tty();
        }
        if console.color {
            table.enforce_styling();
        }
        let bold =
            |name: &&str| if console.color { Cell::new(name).add_attribute(Attribute::Bold) } else { Cell::new(name) };
        table.set_header(columns.iter().map(bold).collect::<Vec<_>>());
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        Self { table, columns: columns.len() }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.columns, "each row has a cell for each column");
        self.table.add_row(cells);
    }

    /// True when there is no row.
    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The table, line by line, its header first; nothing when it has no row. Away from a terminal each row is one line.
    pub(crate) fn lines(&self) -> Vec<String> {
        if self.is_empty() {
            return Vec::new();
        }
        self.table.trim_fmt().lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// Writes the table; nothing when it has no row.
    pub(crate) fn print(&self, console: &mut Console) -> Result<(), Failure> {
        self.lines().iter().try_for_each(|line| console.print(&format!("{line}\n")))
    }
}

/// A cell of text; harmless whatever it holds.
pub(crate) fn text(content: impl AsRef<str>) -> Cell {
    Cell::new(harmless(content.as_ref()))
}

/// A cell that may be empty, shown as a dash.
pub(crate) fn maybe(content: Option<impl AsRef<str>>) -> Cell {
    content.map_or_else(|| Cell::new("-"), text)
}

/// How many attempts count, of how many; of a slot that was missed, that they failed.
pub(crate) fn attempts(used: u32, of: u32, state: SlotState) -> String {
    let failed = if state == SlotState::Missed && used > 0 { " failed" } else { "" };
    format!("{used}/{of}{failed}")
}

/// What is said beside a list or an output of a slot that was missed after attempts that failed.
pub(crate) fn missed(slot: impl Display, used: u32, of: u32, state: SlotState) -> Option<String> {
    (state == SlotState::Missed && used > 0).then(|| format!("{slot} was {}", missed_after(used, of)))
}

/// A slot's state in its colour.
pub(crate) fn state(console: &Console, state: SlotState) -> Cell {
    let cell = Cell::new(state.as_str());
    if console.color { cell.fg(color(state)) } else { cell }
}

/// Green for what is well, red for what needs a person, yellow for what may become either.
pub(crate) const fn color(state: SlotState) -> Color {
    match state {
        SlotState::Done => Color::Green,
        SlotState::Running => Color::Cyan,
        SlotState::Retrying => Color::Yellow,
        SlotState::Failed | SlotState::Missed => Color::Red,
        SlotState::Pending | SlotState::Skipped => Color::DarkGrey,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_two_spaces_apart_and_lines_end_with_their_text() {
        let (mut console, out, _) = Console::captured(false);
        let mut grid = Grid::new(&console, &["JOB", "ATTEMPTS", "NODE"]);
        grid.row(vec![text("billing"), text("1/3"), text("a")]);
        grid.row(vec![text("b"), text("12/12"), maybe(None::<&str>)]);
        grid.print(&mut console).unwrap();
        assert_eq!(
            out.text(),
            "JOB      ATTEMPTS  NODE\n\
             billing  1/3       a\n\
             b        12/12     -\n"
        );
    }

    #[test]
    fn away_from_a_terminal_a_row_is_one_line_however_long() {
        let (mut console, out, _) = Console::captured(false);
        let mut grid = Grid::new(&console, &["A", "B"]);
        grid.row(vec![text("x ".repeat(200)), text("y ".repeat(200))]);
        grid.print(&mut console).unwrap();
        assert_eq!(out.text().lines().count(), 2);
    }

    #[test]
    fn a_cell_cannot_carry_an_escape_sequence() {
        let (mut console, out, _) = Console::captured(false);
        let mut grid = Grid::new(&console, &["A"]);
        grid.row(vec![text("\x1b[31mred\nnext")]);
        grid.print(&mut console).unwrap();
        assert_eq!(out.text(), "A\n\\x1b[31mred\\nnext\n");
    }

    #[test]
    fn a_table_without_rows_writes_nothing() {
        let (mut console, out, _) = Console::captured(false);
        Grid::new(&console, &["A"]).print(&mut console).unwrap();
        assert_eq!(out.text(), "");
    }
}
