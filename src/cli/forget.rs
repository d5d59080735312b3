//! `cronward forget NAME`: a job that no node plans any more, or a node that is gone, leaves the registry.

use std::sync::Arc;

use crate::admin::AdminSession;
use crate::admin::actions::{Change, Undo};
use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::session;
use crate::cli::store_args::StoreArgs;
use crate::cli::verbs::OperatorArgs;
use crate::clock::SystemClock;
use crate::job::{JobName, NodeName};
use crate::slot::Mark;
use crate::store::{self, Intervention, JobOrigin, NodeEntry, Trial};

/// Remove a job that no live node plans, or a node that is gone, from the listings
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward forget billing --yes")]
pub(crate) struct ForgetArgs {
    /// The name of the job, or of the node
    #[arg(value_name = "JOB|NODE")]
    pub(crate) name: String,
    /// The name is a node's, if a job has the same name
    #[arg(long)]
    pub(crate) node: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Forgets the job or the node.
pub(crate) async fn forget(args: &ForgetArgs, console: &mut Console) -> Result<(), Failure> {
    let (session, address) = session::open_at(&args.store, console).await?;
    let (now, nodes) = session.store.nodes().await?;
    let alive: Vec<&NodeEntry> = nodes.iter().filter(|node| node.is_alive(now)).collect();
    let node = nodes.iter().find(|node| node.report.name.as_str() == args.name).map(|node| node.report.name.clone());
    let job = args.name.parse::<JobName>().ok().filter(|name| session.catalog.find(name).is_ok());
    let (trial, effect) = match (job, node) {
        (Some(job), None) if !args.node => of_job(&session, &job, &alive).await?,
        (None, Some(node)) => of_node(&node, &alive)?,
        (Some(_), Some(node)) if args.node => of_node(&node, &alive)?,
        (Some(_), Some(_)) => {
            let name = &args.name;
            return Err(Failure::Usage(format!("{name} is a job and a node: add --node for the node, or rename one")));
        }
        _ => {
            let (name, jobs, nodes) = (&args.name, args.store.command("jobs"), args.store.command("nodes"));
            return Err(Failure::Usage(format!(
                "no job or node {name}: `{jobs}` lists the jobs, and `{nodes}` the nodes"
            )));
        }
    };
    let change = Change {
        verb: "forget",
        target: args.name.clone(),
        effect,
        needless: String::new(),
        undo: Undo::Not("no undo needed: a job or a node that reports again is listed again".to_owned()),
        line: args.store.command_line(),
    };
    if !change.confirm(&OperatorArgs { yes: args.yes, ..OperatorArgs::default() }, console)? {
        return Ok(());
    }
    let forgotten = store::forget(&address.url, address.options.clone(), Arc::new(SystemClock), &trial).await;
    forgotten.map_err(|error| Failure::opening(error, address.from_command_line))?;
    change.tell(Intervention::Applied, args.output, console)
}

/// A job that a live node plans would be back at once, and one that runs is not gone.
async fn of_job(session: &AdminSession, name: &JobName, alive: &[&NodeEntry]) -> Result<(Trial, String), Failure> {
    let job = session.catalog.find(name)?;
    let planner = alive.iter().find(|node| node.plans(name)).filter(|_| job.entry.origin == JobOrigin::File);
    if let Some(node) = planner {
        let node = &node.report.name;
        return Err(Failure::Held(format!(
            "node {node} plans {name}: remove the job from the file of each node and reload the file (SIGHUP); \
             wait for the reload, then try again"
        )));
    }
    for record in session.inspect(&job.current(session.now)).await? {
        if let Mark::Leased { by, .. } = &record.mark {
            let (slot, node) = (&record.slot, &by.node);
            return Err(Failure::Held(format!("{slot} runs on node {node}: wait for the run to end, then try again")));
        }
    }
    let trial = Trial { job: Some(name.clone()), ..Trial::default() };
    Ok((trial, "the job and its pause are removed from the registry".to_owned()))
}

fn of_node(name: &NodeName, alive: &[&NodeEntry]) -> Result<(Trial, String), Failure> {
    if alive.iter().any(|node| node.report.name == *name) {
        return Err(Failure::Held(format!("node {name} is alive: stop the node, wait for its end, then try again")));
    }
    let trial = Trial { node: Some(name.clone()), ..Trial::default() };
    Ok((trial, "the node is removed from the registry".to_owned()))
}
