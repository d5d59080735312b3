//! `cronward nodes`: every node, how its clock differs from the store's, and which jobs the nodes define differently.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::admin::words::{brief, harmless, relative};
use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::format::{self, Grid};
use crate::cli::session;
use crate::cli::store_args::StoreArgs;
use crate::observe::view::NodeView;

/// Digits of a hash that are shown: enough to tell two apart.
const DIGITS: usize = 6;

/// List the nodes with version, clock offset and config hash, and the jobs that they define differently
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward nodes --config /etc/cronward/jobs.toml")]
pub(crate) struct NodesArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Lists the nodes that the registry knows.
pub(crate) async fn list(args: &NodesArgs, console: &mut Console) -> Result<(), Failure> {
    let (session, address) = session::open_at(&args.store, console).await?;
    let (now, nodes) = session.store.nodes().await?;
    let views = NodeView::all(&nodes, now);
    if args.output.json {
        return console.json(&views);
    }
    if views.is_empty() {
        let (within, run) = (brief(address.options.retention), args.store.command("run"));
        console.note(format_args!("no nodes: no heartbeat in the last {within}; start one with: {run}"));
    }
    print(&views, now, console)
}

/// The table, and below it the time zone databases and what differs.
fn print(views: &[NodeView], now: DateTime<Utc>, console: &mut Console) -> Result<(), Failure> {
    let mut grid = Grid::new(console, &["NODE", "STATE", "VERSION", "SEEN", "OFFSET", "RUNNING", "CONFIG"]);
    for view in views {
        let gone = view.state.is_gone();
        let hash: String = view.config_hash.chars().take(DIGITS).collect();
        let mark = if view.differs.is_empty() { "" } else { " differs" };
        grid.row(vec![
            format::text(view.node.as_str()),
            format::text(view.word()),
            format::text(&view.version),
            format::text(relative(now, view.seen)),
            format::maybe((!gone).then(|| offset(view.clock_offset_s))),
            format::maybe((!gone).then(|| view.running.len().to_string())),
            format::text(format!("{hash}{mark}")),
        ]);
    }
    grid.print(console)?;
    let told: Vec<String> = zones(views).into_iter().chain(drift(views)).collect();
    if !told.is_empty() {
        console.print("\n")?;
    }
    for line in told {
        console.print(&format!("{}\n", harmless(&line)))?;
    }
    Ok(())
}

/// The time zone databases of the nodes that are alive; none where every job is in UTC.
fn zones(views: &[NodeView]) -> Option<String> {
    let alive = views.iter().filter(|view| !view.state.is_gone());
    let database = |view: &NodeView| Some(format!("{} ({})", view.zones_from.as_ref()?, view.zones.as_ref()?));
    let databases: std::collections::BTreeSet<String> = alive.filter_map(database).collect();
    let databases: Vec<String> = databases.into_iter().collect();
    (!databases.is_empty()).then(|| format!("time zones: {}", databases.join(", ")))
}

/// What differs among the nodes that are alive, one line each.
fn drift(views: &[NodeView]) -> Vec<String> {
    let mut lines = namesakes(views);
    for view in views.iter().filter(|view| !view.differs.is_empty()) {
        let jobs: Vec<&str> = view.differs.iter().map(|job| job.as_str()).collect();
        lines.push(format!(
            "node {} has a different definition of {}; give every node the same file, then reload it (SIGHUP)",
            view.node,
            jobs.join(", ")
        ));
    }
    for view in views.iter().filter(|view| view.zones_old) {
        lines.push(format!(
            "node {} has older time zones than another ({}, {}): jobs may start at another hour; update the tzdata package of its host",
            view.node,
            view.zones.as_deref().unwrap_or_default(),
            view.zones_from.as_deref().unwrap_or_default(),
        ));
    }
    let mut versions: Vec<&str> =
        views.iter().filter(|view| !view.state.is_gone()).map(|view| view.version.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    if versions.len() > 1 {
        lines
            .push(format!("versions differ: {}; docs/operations.md says which may share a store", versions.join(", ")));
    }
    lines
}

/// Nodes that have the same name.
fn namesakes(views: &[NodeView]) -> Vec<String> {
    let mut lines = Vec::new();
    for (index, view) in views.iter().enumerate().filter(|(_, view)| !view.state.is_gone()) {
        let is_other = |other: &&NodeView| other.node == view.node && !other.state.is_gone();
        if let Some(other) = views.iter().skip(index + 1).find(is_other) {
            lines.push(format!(
                "two nodes are named {}: instances {} and {}; give each node its own name ([node] name, or run --node)",
                view.node, view.instance, other.instance
            ));
        }
    }
    lines
}

/// A clock's difference from the store's: `+12ms`, `-1.5s`, `+3h`.
fn offset(seconds: f64) -> String {
    let sign = if seconds < 0.0 { '-' } else { '+' };
    let span = Duration::try_from_secs_f64(seconds.abs()).unwrap_or(Duration::MAX);
    match span.as_secs() {
        0 => format!("{sign}{}ms", span.as_millis()),
        1..=119 => format!("{sign}{:.1}s", span.as_secs_f64()),
        _ => format!("{sign}{}", brief(span)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::fixture::{self, NOON, at, node};
    use crate::job::JobName;
    use crate::observe::view::NodeState;
    use crate::store::NodeEntry;

    fn view(name: &str, state: NodeState, differs: &[&str]) -> NodeView {
        NodeView {
            node: node(name),
            instance: String::new(),
            state,
            version: "0.1.0".to_owned(),
            started: at("2026-11-21T11:00:00Z"),
            seen: at("2026-11-21T12:11:57Z"),
            overdue: false,
            clock_offset_s: 0.012,
            config_hash: "1f2e3d4c5b6a7988".to_owned(),
            differs: differs.iter().map(|job| JobName::new(job).unwrap()).collect(),
            zones: None,
            zones_from: None,
            zones_old: false,
            labels: std::collections::BTreeMap::new(),
            running: vec!["billing@2026-11-21T12Z".to_owned()],
            behind: Vec::new(),
        }
    }

    fn shown(views: &[NodeView]) -> String {
        let (mut console, out, _) = Console::captured(false);
        print(views, at(NOON), &mut console).unwrap();
        out.text()
    }

    #[test]
    fn each_node_has_a_line_and_what_differs_is_told_below() {
        let lost = NodeView { seen: at("2026-11-21T09:00:00Z"), ..view("c", NodeState::Lost, &[]) };
        assert_eq!(
            shown(&[view("a", NodeState::Alive, &[]), view("b", NodeState::Draining, &["billing", "mail"]), lost]),
            "NODE  STATE     VERSION  SEEN    OFFSET  RUNNING  CONFIG\n\
             a     alive     0.1.0    3s ago  +12ms   1        1f2e3d\n\
             b     draining  0.1.0    3s ago  +12ms   1        1f2e3d differs\n\
             c     lost      0.1.0    3h ago  -       -        1f2e3d\n\
             \n\
             node b has a different definition of billing, mail; give every node the same file, then reload it (SIGHUP)\n"
        );
    }

    #[test]
    fn a_node_whose_next_heartbeat_is_overdue_is_not_said_to_be_alive() {
        let entry = |name: &str, ago: i64| NodeEntry {
            report: fixture::report(name, at("2026-11-21T11:00:00Z")),
            seen: at(NOON) - chrono::TimeDelta::seconds(ago),
        };
        let views = NodeView::all(&[entry("a", 10), entry("b", 12), entry("c", 20)], at(NOON));
        let text = shown(&views);
        let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
        let told: Vec<_> = rows.iter().map(|row| (row[0], row[1], row[3])).collect();
        assert_eq!(told, [("a", "alive", "10s"), ("b", "late", "12s"), ("c", "lost", "20s")]);
    }

    #[test]
    fn nodes_of_two_versions_are_told_of_unless_one_is_gone() {
        let newer = |state| NodeView { version: "0.2.0".to_owned(), ..view("b", state, &[]) };
        assert!(
            shown(&[view("a", NodeState::Alive, &[]), newer(NodeState::Alive)])
                .contains("versions differ: 0.1.0, 0.2.0")
        );
        assert!(!shown(&[view("a", NodeState::Alive, &[]), newer(NodeState::Lost)]).contains("versions differ"));
    }

    #[test]
    fn the_time_zone_databases_are_named_and_a_node_with_older_zones() {
        let zones = |name, release: &str, zones_old| NodeView {
            zones: Some(release.to_owned()),
            zones_from: Some("/usr/share/zoneinfo".to_owned()),
            zones_old,
            ..view(name, NodeState::Alive, &[])
        };
        let same = shown(&[zones("a", "2026f", false), zones("b", "2026f", false), view("c", NodeState::Alive, &[])]);
        assert!(same.ends_with("\n\ntime zones: /usr/share/zoneinfo (2026f)\n"), "{same}");
        let other = shown(&[zones("a", "2026f", false), zones("b", "2025b", true)]);
        let told = "time zones: /usr/share/zoneinfo (2025b), /usr/share/zoneinfo (2026f)\n\
                    node b has older time zones than another (2025b, /usr/share/zoneinfo): ";
        assert!(other.contains(told), "{other}");
    }

    #[test]
    fn an_offset_is_shown_in_its_sensible_unit() {
        for (seconds, text) in
            [(0.0, "+0ms"), (-0.25, "-250ms"), (1.5, "+1.5s"), (-119.0, "-119.0s"), (10_800.0, "+3h")]
        {
            assert_eq!(offset(seconds), text);
        }
    }

    #[test]
    fn the_table_fits_80_columns() {
        let long = NodeView { clock_offset_s: -119.0, ..view("web-17.eu-1.example", NodeState::Draining, &["x"]) };
        for line in shown(&[long]).lines().take(2) {
            assert!(line.len() <= 80, "{line}");
        }
    }
}
