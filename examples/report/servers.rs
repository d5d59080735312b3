//! The part of the page that tells of real nodes and real servers.

use std::collections::BTreeSet;

use crate::evidence::{Chaos, Class, Latency};
use crate::render::{grouped, maybe, rule_of_three, span, table};

/// With its head.
pub(crate) fn section(chaos: &[Chaos]) -> String {
    let mut text =
        "\n## Real nodes, real servers\n\nDaemons as processes, against each store, under random faults.\n\n"
            .to_owned();
    text += &slots(chaos);
    for (store, number, why) in chaos.iter().flat_map(inconclusive) {
        text += &format!("\n{store}: run {number} of this plan was inconclusive, and counts for nothing: {why}.\n");
    }
    text += "\nBy class, slots = explained + unexplained:\n\n";
    text += &classes(chaos);
    text += "\nUndisturbed slots, and what was counted without the checker:\n\n";
    text += &undisturbed(chaos);
    text += "\nFaults, by how often each was injected:\n\n";
    text += &faults(chaos);
    text += "\nRecovery where nothing else excuses a delay, held to the bound of the protocol alone, and to bound and allowance:\n\n";
    text += &recoveries(chaos);
    text += "\nWhat the allowance is, and what would be wrong without it:\n\n";
    text + &allowances(chaos)
}

fn inconclusive(chaos: &Chaos) -> impl Iterator<Item = (&str, usize, &str)> {
    chaos.inconclusive_before.iter().zip(1..).map(|(why, number)| (&*chaos.store, number, &**why))
}

fn slots(chaos: &[Chaos]) -> String {
    let heads = [
        "store",
        "seed",
        "nodes",
        "time",
        "faults",
        "other lives",
        "slots",
        "runs",
        "once",
        "repeat",
        "overlap",
        "lost",
        "explained",
        "by lost data",
        "unexplained",
        "violations",
    ];
    let rows = chaos.iter().map(|c| {
        let mut row = vec![c.store.clone(), c.seed.to_string(), c.nodes.to_string(), span(c.seconds)];
        row.extend([grouped(c.faults.values().sum()), maybe(c.other_lives)]);
        row.extend([c.slots, c.runs, c.once, c.repeat, c.overlap, c.lost, c.explained].map(grouped));
        row.extend([maybe(c.by_lost_data), grouped(c.unexplained), c.report.violations.len().to_string()]);
        row
    });
    table(&heads, rows)
}

fn classes(chaos: &[Chaos]) -> String {
    let sum = |class: &Class| [class.explained, class.unexplained].map(grouped).join(" + ");
    let of = |class: &Class| format!("{} = {}", grouped(class.slots), sum(class));
    let rows = chaos.iter().map(|c| {
        let counts = ["repeat", "overlap", "lost"].map(|name| c.report.classes.get(name).map_or("–".to_owned(), of));
        [c.store.clone()].into_iter().chain(counts).collect()
    });
    table(&["store", "repeat", "overlap", "lost"], rows)
}

fn undisturbed(chaos: &[Chaos]) -> String {
    let rows = chaos.iter().map(|c| {
        let n = c.report.undisturbed;
        let rate = rule_of_three(n).filter(|_| c.wrong() == 0).map_or("–".to_owned(), |rate| format!("{rate:.1e}"));
        vec![c.store.clone(), grouped(n), rate, grouped(c.due), grouped(c.left_alone)]
    });
    table(&["store", "undisturbed", "rate <", "due by the clock", "left alone, quick"], rows)
}

fn faults(chaos: &[Chaos]) -> String {
    let kinds: BTreeSet<&String> = chaos.iter().flat_map(|chaos| chaos.faults.keys()).collect();
    let heads: Vec<&str> = ["fault"].into_iter().chain(chaos.iter().map(|chaos| &*chaos.store)).collect();
    let count = |chaos: &Chaos, kind: &String| chaos.faults.get(kind).map_or("–".to_owned(), |n| grouped(*n));
    let rows = kinds.into_iter().map(|kind| {
        let counts = chaos.iter().map(|chaos| count(chaos, kind));
        [kind.clone()].into_iter().chain(counts).collect()
    });
    table(&heads, rows)
}

fn recoveries(chaos: &[Chaos]) -> String {
    let rows = chaos.iter().flat_map(|c| {
        let (plain, with) = (&c.without_allowance.recovery, &c.report.recovery);
        [
            recovered(&c.store, "crash", &plain.crash, &with.crash),
            recovered(&c.store, "failure", &plain.failure, &with.failure),
        ]
    });
    let heads = [
        "store",
        "after a",
        "seen",
        "p50",
        "p99",
        "max",
        "most of the bound",
        "beyond it",
        "most of bound and allowance",
    ];
    table(&heads, rows)
}

fn recovered(store: &str, after: &str, plain: &Latency, with: &Latency) -> Vec<String> {
    let seconds = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3} s"));
    let part = |value: Option<f64>| value.map_or("–".to_owned(), |ratio| format!("{:.0} %", ratio * 100.0));
    let mut row = vec![store.to_owned(), after.to_owned(), grouped(plain.count)];
    row.extend([plain.p50_s, plain.p99_s, plain.max_s].map(seconds));
    row.extend([part(plain.worst_ratio), grouped(plain.beyond()), part(with.worst_ratio)]);
    row
}

fn allowances(chaos: &[Chaos]) -> String {
    let rows = chaos.iter().map(|c| {
        let plain = &c.without_allowance;
        vec![
            c.store.clone(),
            format!("{:.3} s", c.allowance_s),
            grouped(c.unexplained),
            grouped(plain.unexplained),
            c.report.violations.len().to_string(),
            grouped(plain.violations),
        ]
    });
    table(&["store", "allowance", "unexplained", "without it", "violations", "without it"], rows)
}
