//! `cronward help COMMAND` and `cronward man`: the command line as it tells of itself. Files are written only where they are told
//! to.

use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;

use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::file;

/// Show the help of a command, like `cronward COMMAND --help`
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward help exec")]
pub(crate) struct HelpArgs {
    /// The command, like exec or import crontab; without it all commands are listed
    #[arg(value_name = "COMMAND", num_args = 0..=3)]
    pub(crate) command: Vec<String>,
}

/// Prints the help.
pub(crate) fn help(args: &HelpArgs, commands: Command, console: &mut Console) -> Result<(), Failure> {
    let mut root = commands.color(if console.color { clap::ColorChoice::Auto } else { clap::ColorChoice::Never });
    // Names of commands below others are complete only then.
    root.build();
    let mut wanted = &mut root;
    for word in &args.command {
        let Some(below) = wanted.find_subcommand_mut(word) else { return Err(unknown(&args.command.join(" "))) };
        wanted = below;
    }
    let help = wanted.render_long_help();
    console.print(&if console.color { help.ansi().to_string() } else { help.to_string() })
}

fn unknown(name: &str) -> Failure {
    let shown: String = name.chars().take(60).collect();
    Failure::Usage(format!("there is no command {shown:?}: try a command that `cronward help` lists"))
}

/// Print the manual page cronward(1); with --out write one page for each command
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Example: cronward man --out /usr/local/share/man/man1",
    after_help = "To read the page: cronward man | man -l -"
)]
pub(crate) struct ManArgs {
    /// The folder for cronward.1, cronward-run.1 and so on; created if it does not exist
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// Writes the pages.
pub(crate) fn man(args: &ManArgs, commands: Command, console: &mut Console) -> Result<(), Failure> {
    let mut root = commands.disable_help_subcommand(true);
    root.build();
    let Some(folder) = &args.out else {
        let mut page = Vec::new();
        page_of(root, &mut page)?;
        return console.print(&String::from_utf8_lossy(&page));
    };
    let pages = write(root, folder).map_err(|error| {
        Failure::Usage(format!("cannot write to {}: {error}; name another folder with --out", folder.display()))
    })?;
    console.note(format_args!("wrote {pages} pages to {}", folder.display()));
    Ok(())
}

/// The number of pages.
fn write(root: Command, folder: &Path) -> std::io::Result<usize> {
    std::fs::create_dir_all(folder)?;
    let mut waiting = vec![root];
    let mut pages = 0;
    while let Some(command) = waiting.pop() {
        waiting.extend(command.get_subcommands().cloned());
        let name = Man::new(command.clone()).get_filename();
        let mut page = Vec::new();
        page_of(command, &mut page)?;
        let path = folder.join(name);
        // Pages are for everybody.
        file::replace(&path, &page, 0o644)?;
        pages += 1;
    }
    Ok(pages)
}

fn page_of(command: Command, page: &mut Vec<u8>) -> std::io::Result<()> {
    Man::new(command).manual("cronward").render(page)
}
