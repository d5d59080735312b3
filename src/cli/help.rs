//! `cronward help COMMAND`: what `cronward COMMAND --help` says. Knows the command line and nothing else.

use crate::cli::command;
use crate::cli::console::Console;
use crate::cli::failure::Failure;

/// The help of a command, as `cronward COMMAND --help`
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward help exec")]
pub(crate) struct Args {
    /// The command, like exec or import crontab; without one the list of all
    #[arg(value_name = "COMMAND", num_args = 0..=3)]
    pub(crate) command: Vec<String>,
}

/// Prints the help.
pub(crate) fn help(args: &Args, console: &mut Console) -> Result<(), Failure> {
    let mut root = command().color(if console.color { clap::ColorChoice::Auto } else { clap::ColorChoice::Never });
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
    Failure::Usage(format!("there is no command {shown:?}: try one that `cronward help` lists"))
}
