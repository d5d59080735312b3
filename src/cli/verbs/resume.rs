//! `cronward resume J`: ends a pause.

use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::session::Session;
use crate::cli::store_args::StoreArgs;
use crate::cli::verbs::OperatorArgs;
use crate::cli::verbs::deed::Deed;
use crate::cli::verbs::pause::{again, in_force};
use crate::job::JobName;

/// End the pause of a job: its current slot is started at once if it is due and not done
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward resume billing --reason 'upgrade is over' --yes")]
pub(crate) struct Args {
    /// The job
    #[arg(value_name = "JOB")]
    pub(crate) job: JobName,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Resumes the job.
pub(crate) async fn resume(args: &Args, console: &mut Console) -> Result<(), Failure> {
    let session = Session::open(&args.store, console).await?;
    resume_in(&session, args, console).await
}

pub(super) async fn resume_in(session: &Session, args: &Args, console: &mut Console) -> Result<(), Failure> {
    let job = &session.catalog.find(&args.job)?.entry.name;
    let before = in_force(session, job).await?;
    let deed = Deed {
        verb: "resume",
        target: job.to_string(),
        effect: "its slots are started again".to_owned(),
        needless: "it is not paused".to_owned(),
        undo: args.store.command(before.map_or_else(|| format!("pause {job}"), |pause| again(job, &pause))),
        store: args.store.clone(),
    };
    if !deed.confirm(&args.operator, console)? {
        return Ok(());
    }
    let answer = session.store.resume(job, &args.operator.audit("resume")).await?;
    deed.tell(answer, args.output, console)
}
