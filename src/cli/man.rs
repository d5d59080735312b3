//! `cronward man`: the manual pages, made from the command line itself. Writes files only where it is told to.

use std::path::{Path, PathBuf};

use clap_mangen::Man;

use crate::cli::command;
use crate::cli::console::Console;
use crate::cli::failure::Failure;

/// The manual page of cronward(1) on stdout; with --out one for each command, as files
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Example: cronward man --out /usr/local/share/man/man1",
    after_help = "To read it at once: cronward man | man -l -"
)]
pub(crate) struct Args {
    /// The folder for cronward.1, cronward-run.1 and so on; it is made where it is missing
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// Writes the pages.
pub(crate) fn man(args: &Args, console: &mut Console) -> Result<(), Failure> {
    let Some(folder) = &args.out else {
        let mut page = Vec::new();
        page_of(root(), &mut page)?;
        return console.print(&String::from_utf8_lossy(&page));
    };
    let pages = write(folder).map_err(|error| {
        Failure::Usage(format!("cannot write to {}: {error}; name another folder with --out", folder.display()))
    })?;
    console.note(format_args!("wrote {pages} pages to {}", folder.display()));
    Ok(())
}

fn root() -> clap::Command {
    let mut root = command().disable_help_subcommand(true);
    root.build();
    root
}

/// The number of pages.
fn write(folder: &Path) -> std::io::Result<usize> {
    std::fs::create_dir_all(folder)?;
    let mut waiting = vec![root()];
    let mut pages = 0;
    while let Some(command) = waiting.pop() {
        waiting.extend(command.get_subcommands().cloned());
        let name = Man::new(command.clone()).get_filename();
        let mut page = Vec::new();
        page_of(command, &mut page)?;
        std::fs::write(folder.join(name), page)?;
        pages += 1;
    }
    Ok(pages)
}

fn page_of(command: clap::Command, page: &mut Vec<u8>) -> std::io::Result<()> {
    Man::new(command).manual("cronward").render(page)
}
