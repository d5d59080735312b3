//! `cronward token new`: a token for the port, and its line for the file of tokens.

use std::time::Duration;

use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::value_parsers;
use crate::clock::{Clock, SystemClock, later};
use crate::config::Role;
use crate::drive::Entropy;
use crate::web::Mint;

/// Make tokens for the daemon's port
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward token new --role viewer --name prometheus")]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    pub(crate) verb: TokenVerb,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum TokenVerb {
    New(NewTokenArgs),
}

/// Print a new token, once, and below it the line for [http.auth] tokens_file
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward token new --role operator --name ana --expires 90d")]
pub(crate) struct NewTokenArgs {
    /// What its bearer may do: viewer or operator
    #[arg(long, value_name = "ROLE", value_parser = role)]
    pub(crate) role: Role,
    /// Who or what has it, for the log
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,
    /// For how long it is good [default: until its line is removed]
    #[arg(long, value_name = "DURATION", value_parser = value_parsers::span)]
    pub(crate) expires: Option<Duration>,
}

fn role(text: &str) -> Result<Role, String> {
    Role::named(text).ok_or_else(|| "write viewer or operator".to_owned())
}

/// Prints the token and the line, each on a line of stdout; what to do with them on stderr.
pub(crate) fn token(args: &TokenArgs, console: &mut Console) -> Result<(), Failure> {
    let TokenVerb::New(args) = &args.verb;
    let expires = args.expires.map(|span| later(SystemClock.now().wall, span));
    let bits = Entropy::secret().map_err(|error| Failure::Internal(format!("no random source: {error}")))?;
    let mint =
        Mint::new(bits, args.role, &args.name, expires).map_err(|error| Failure::Usage(format!("--name {error}")))?;
    console.print(&format!("{}\n{}\n", mint.token, mint.line))?;
    console.note("the first line is the token: it is shown once, and kept nowhere");
    console.note("append the second line to the file of [http.auth] tokens_file, then reload the daemons (SIGHUP)");
    Ok(())
}
