//! What is deployed beside a node: alerts and their tests, and the dashboard. Each expression is read by promtool, and each name that
//! it asks for is one of the table.

use std::collections::BTreeSet;

use cronward::metrics::{FAMILIES, FamilyKind};
use serde_json::Value;

use crate::promtool::{objections, on_expressions, read};

const ALERTS: &str = "deploy/prometheus/alerts.yaml";
const TESTS: &str = "deploy/prometheus/alerts_test.yaml";
const DASHBOARD: &str = "deploy/grafana/cronward.json";

fn path(path: &str) -> String {
    format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))
}

/// Names of metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("cronward_") || word.starts_with("process_")).collect()
}

fn known() -> BTreeSet<String> {
    let named = FAMILIES.iter().flat_map(|family| match family.kind {
        FamilyKind::Histogram => {
            ["_bucket", "_sum", "_count"].map(|suffix| format!("{}{suffix}", family.name)).to_vec()
        }
        FamilyKind::Counter | FamilyKind::Gauge => vec![family.name.to_owned()],
    });
    named.collect()
}

fn unknown(text: &str) -> Vec<&str> {
    let known = known();
    names(text).into_iter().filter(|name| !known.contains(*name)).collect()
}

/// The anchors of a page, as its headings have them on the web.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings =
        page.lines().filter_map(|line| line.strip_prefix('#')).map(|line| line.trim_start_matches('#').trim());
    let slug = |heading: &str| -> String {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(slug).collect()
}

/// Each alert with the lines below its name.
fn alerts() -> Vec<(String, String)> {
    let text = read(ALERTS);
    let rules = text.split("- alert: ").skip(1).map(|rule| rule.split_once('\n').unwrap());
    rules.map(|(name, rule)| (name.trim().to_owned(), rule.to_owned())).collect()
}

#[test]
fn promtool_takes_the_alerts_and_their_tests_pass() {
    assert_eq!(objections(&["check", "rules", &path(ALERTS)], ""), None);
    assert_eq!(objections(&["test", "rules", &path(TESTS)], ""), None);
}

#[test]
fn each_alert_says_how_grave_it_is_and_where_it_is_written_what_to_do() {
    let (alerts, anchors) = (alerts(), anchors(&read("docs/operations.md")));
    let names: Vec<&str> = alerts.iter().map(|(name, _)| name.as_str()).collect();
    let expected =
        ["JobLate", "JobFailing", "Overlap", "StoreAway", "FewNodes", "FilesDiffer", "ClockOff", "NotificationsStuck"];
    assert_eq!(names, expected.map(|name| format!("Cronward{name}")));
    for (name, rule) in &alerts {
        for key in ["expr:", "for:", "severity:", "summary:", "runbook_url:"] {
            assert!(rule.contains(key), "{name} has no {key}");
        }
        let anchor = rule.split("docs/operations.md#").nth(1).unwrap().lines().next().unwrap();
        assert!(anchors.contains(anchor), "{name}: docs/operations.md has no #{anchor}");
        assert_eq!(unknown(rule), Vec::<&str>::new(), "{name}");
    }
}

#[test]
fn each_alert_but_a_few_is_seen_firing_and_ending() {
    let tests = read(TESTS);
    let seen = alerts().into_iter().filter(|(name, _)| {
        let cases: Vec<&str> = tests.split(&format!("alertname: {name}\n")).skip(1).collect();
        let ends = cases.iter().any(|case| case.trim_start().starts_with("exp_alerts: []"));
        let fires = cases.iter().any(|case| case.trim_start().starts_with("exp_alerts:\n"));
        ends && fires
    });
    assert!(seen.count() >= 6, "fewer than six alerts are tried");
}

/// Every expression of the dashboard, its variables replaced by what they may stand for.
fn expressions(dashboard: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![dashboard];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("expr").and_then(Value::as_str).map(str::to_owned));
                open.extend(fields.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    let replaced =
        |text: String| text.replace("$__rate_interval", "5m").replace("$namespace", ".*").replace("$job", ".*");
    found.into_iter().map(replaced).collect()
}

#[test]
fn the_dashboard_asks_for_what_there_is() {
    let text = read(DASHBOARD);
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "two panels have one id");
    let expressions = expressions(&dashboard);
    assert!(expressions.len() >= panels.len(), "{} expressions in {} panels", expressions.len(), panels.len());
    assert!(expressions.iter().all(|expression| !expression.contains('$')), "{expressions:#?}");
    assert_eq!(on_expressions(&expressions), None);
    assert_eq!(unknown(&text), Vec::<&str>::new());
}

#[test]
fn a_name_that_there_is_not_and_a_heading_that_there_is_not_are_told() {
    assert_eq!(unknown("sum(rate(cronward_runs_total[5m])) / cronward_run_total"), ["cronward_run_total"]);
    assert_eq!(
        unknown("cronward_run_duration_seconds"),
        ["cronward_run_duration_seconds"],
        "a histogram has no such series"
    );
    assert!(anchors("## A slot is `failed` or `missed`\n").contains("a-slot-is-failed-or-missed"));
}
