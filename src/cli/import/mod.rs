//! `cronward import`: what other schedulers have, as `jobs.toml`. Reads files and writes text; opens no store, changes
//! nothing, and leaves nothing out silently: what has no counterpart becomes a comment that names its file and line.

mod document;
mod entry;
mod fields;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod line;
mod table;
#[cfg(test)]
mod tests;

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::import::document::{Item, SourceLine, ZoneSource, comment};
use crate::cli::import::entry::{Accounts, Judged, Lead, is_systems};
use crate::cli::import::line::Names;
use crate::cli::import::table::Source;
use crate::cli::value_parsers;
use crate::text::message;
use crate::zone::Zone;

/// A crontab is a page; this is a shelf of them.
const LARGEST: u64 = 1 << 20;

/// Convert the jobs of another scheduler to jobs.toml
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Example: cronward import crontab /etc/crontab",
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub(crate) struct ImportArgs {
    #[command(subcommand)]
    pub(crate) from: From,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum From {
    Crontab(CrontabArgs),
}

/// Convert crontabs to a jobs.toml on stdout, with a comment wherever cronward behaves differently from cron
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Example: crontab -l | cronward import crontab - --user www-data > jobs.toml",
    after_help = "Exit codes: 0 every line is imported or reported, 1 a line cannot be read (the others are imported), 64 a file \
                  cannot be read."
)]
pub(crate) struct CrontabArgs {
    /// Crontabs; - is stdin
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Each entry names a user, as in /etc/crontab and /etc/cron.d [default: by the file's place, else by its entries]
    #[arg(long, conflicts_with_all = ["personal", "user"])]
    pub(crate) system: bool,
    /// No entry names a user, as in `crontab -l`
    #[arg(long)]
    personal: bool,
    /// The owner of the crontab: its jobs run as this user; implies --personal
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// The zone in which cron read the schedules [default: CRON_TZ or TZ of the crontab, else this machine's]
    #[arg(long, value_name = "ZONE", value_parser = value_parsers::zone)]
    pub(crate) timezone: Option<Zone>,
}

/// Imports what is asked for.
pub(crate) fn import(args: &ImportArgs, console: &mut Console) -> Result<(), Failure> {
    let From::Crontab(args) = &args.from;
    let zone = match &args.timezone {
        Some(zone) => (zone.clone(), ZoneSource::Flag),
        None => (machines_zone(), ZoneSource::Machine),
    };
    let accounts = Accounts::of(&std::fs::read_to_string("/etc/passwd").unwrap_or_default());
    let (mut items, mut names) = (Vec::new(), Names::default());
    for path in &args.files {
        let text = read(path)?;
        let file = if path.as_os_str() == "-" { "stdin".to_owned() } else { path.display().to_string() };
        let leads = table::leads(&text);
        let judged = judge(args, path, &leads, &accounts);
        let mut read =
            table::read(&Source { file: &file, text: &text, system: judged.system, zone: zone.clone() }, &mut names)
                .into_iter();
        // Behind the name of the file and before its entries.
        items.extend(read.next());
        items.extend(judged.doubted.iter().map(|lead| doubt(&file, lead, judged.system)));
        items.extend(read);
    }
    console.print(&document::write(&items, zone, args.user.as_deref()))?;
    console.flush()?;
    tell(&items, console)
}

/// Nobody doubts what the command line or the file's place says.
fn judge<'l>(args: &CrontabArgs, path: &Path, leads: &'l [Lead], accounts: &Accounts) -> Judged<'l> {
    if args.system || args.personal || args.user.is_some() || is_systems(path) {
        let personal = args.personal || args.user.is_some();
        return Judged { system: !personal, doubted: Vec::new() };
    }
    // Where cron looks for a program that has no path; of this machine, which need not be the crontab's.
    accounts.judge(leads, |name| {
        ["/usr/bin", "/bin", "/usr/sbin"].iter().any(|folder| Path::new(folder).join(name).exists())
    })
}

/// What is told of a word that may be a user, in the text and on stderr.
fn doubt(file: &str, lead: &Lead, system: bool) -> Item {
    let word = message(&lead.word, 60);
    let told = if system {
        format!(
            "{word} is read as a user, although this machine has no such account; if it is a command, import with --personal"
        )
    } else {
        format!("{word} is read as a command; if it is a user, as in /etc/crontab, import with --system")
    };
    Item::Doubt(SourceLine { file: file.to_owned(), line: lead.line }, told)
}

/// Tells what was guessed, what was not imported, and how much was.
fn tell(items: &[Item], console: &mut Console) -> Result<(), Failure> {
    for item in items {
        if let Item::Doubt(place, told) = item {
            console.warn(comment(&format!("{place}: {told}")));
        }
    }
    let refused = items.iter().filter_map(|item| if let Item::Refused(refused) = item { Some(refused) } else { None });
    let (mut left_out, mut wrong) = (0, false);
    for refused in refused {
        console.warn(comment(&format!("{}: not imported: {}", refused.place, refused.why)));
        left_out += 1;
        wrong |= refused.wrong;
    }
    let jobs = items.iter().filter(|item| matches!(item, Item::Job(_))).count();
    let jobs = if jobs == 1 { "1 job".to_owned() } else { format!("{jobs} jobs") };
    let lines = if left_out == 1 { "1 line".to_owned() } else { format!("{left_out} lines") };
    console.note(format_args!("imported {jobs}, left out {lines}; read the comments, then: cronward check"));
    if wrong { Err(Failure::Found) } else { Ok(()) }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let shown = path.display();
    let failed = |error: std::io::Error| {
        Failure::Usage(format!("cannot read {shown}: {error}; name a crontab, or `-` for standard input"))
    };
    let source: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path).map_err(failed)?)
    };
    let mut text = Vec::new();
    source.take(LARGEST + 1).read_to_end(&mut text).map_err(failed)?;
    if u64::try_from(text.len()).is_ok_and(|length| length > LARGEST) {
        return Err(Failure::Usage(format!("{shown} is larger than {} KiB: is it a crontab?", LARGEST / 1024)));
    }
    Ok(text)
}

/// The zone that cron reads schedules in: the machine's own.
fn machines_zone() -> Zone {
    let named = std::fs::read_to_string("/etc/timezone").ok().map(|text| text.trim().to_owned());
    let linked = std::fs::read_link("/etc/localtime").ok();
    let linked = linked.and_then(|path| Some(path.to_str()?.split_once("zoneinfo/")?.1.to_owned()));
    [linked, named].into_iter().flatten().find_map(|name| name.parse().ok()).unwrap_or(Zone::UTC)
}
