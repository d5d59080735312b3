//! What about a PostgreSQL server can betray the guard: asked of its settings, judged by `judge`, which is pure. Changes nothing.

use std::collections::BTreeMap;

use super::session::{OWN, PgSession, resolve};
use crate::store::sql::session::{Columns, Session, values};
use crate::store::{Finding, OpenError, StoreOptions};

/// Looks at the server at `url`.
///
/// # Errors
/// [`OpenError::Url`] when the url cannot be used.
pub(in crate::store) async fn examine(url: &str, options: &StoreOptions) -> Result<Vec<Finding>, OpenError> {
    let place = resolve(url)?;
    let work = async {
        let mut session = PgSession::connect(&place.options, options.op_timeout).await.ok()?;
        let rows = session.fetch(OWN.settings, values![]).await.ok()?;
        let pair = |row: &<PgSession as Session>::Row| row.text("name").ok()?.zip(row.text("setting").ok()?);
        Some(rows.iter().filter_map(pair).collect())
    };
    // That it cannot be reached is found out by whoever asks first.
    let said = tokio::time::timeout(options.op_timeout.saturating_mul(2), work).await.ok().flatten();
    Ok(said.as_ref().map(judge).unwrap_or_default())
}

/// What is to be said of a server with these settings.
fn judge(said: &BTreeMap<String, String>) -> Vec<Finding> {
    let word = |name: &str| said.get(name).map_or("", String::as_str);
    let mut findings = vec![Finding::ok("version", format!("postgresql {}", word("server_version")))];
    findings.push(if word("in_recovery") == "true" {
        let fix = "[store] url: name the primary, or add target_session_attrs to what chooses it";
        Finding::fault("role", "it is a standby", "it refuses writes: nothing is claimed", fix)
    } else if word("default_transaction_read_only") == "on" {
        let fix = "ALTER ROLE cronward SET default_transaction_read_only = off";
        Finding::fault("role", "transactions are read-only", "it refuses writes: nothing is claimed", fix)
    } else {
        Finding::ok("role", "it takes writes")
    });
    let loses = "a crash of the server loses what was answered last: a slot may be granted twice";
    findings.push(match word("synchronous_commit") {
        "off" => {
            let fix = "ALTER ROLE cronward SET synchronous_commit = on";
            Finding::warning("persistence", "synchronous_commit off", loses, fix)
        }
        how => Finding::ok("persistence", format!("synchronous_commit {how}")),
    });
    for setting in ["fsync", "full_page_writes"] {
        if word(setting) == "off" {
            let effect = "a power cut may damage the tables: nothing is claimed, or a slot twice";
            let fix = format!("postgresql.conf: {setting} = on");
            findings.push(Finding::fault("durability", format!("{setting} off"), effect, fix));
        }
    }
    findings.push(match word("synchronous_standby_names") {
        "" => Finding::ok("replicas", "none is waited for: a failover may lose what was answered last"),
        names => Finding::ok("replicas", format!("synchronous_standby_names {names}")),
    });
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Severity;

    fn trouble(changes: &[(&str, &str)]) -> Vec<String> {
        let healthy =
            [("server_version", "15.9"), ("synchronous_commit", "on"), ("fsync", "on"), ("in_recovery", "false")];
        let said = healthy.iter().chain(changes).map(|(name, word)| ((*name).to_owned(), (*word).to_owned())).collect();
        let bad = judge(&said).into_iter().filter(|finding| finding.severity > Severity::Ok);
        bad.map(|finding| format!("{} {}", finding.check, finding.severity.as_str())).collect()
    }

    #[test]
    fn each_setting_that_can_betray_the_guard_is_told_with_its_weight() {
        assert_eq!(trouble(&[]), [""; 0]);
        assert_eq!(trouble(&[("synchronous_commit", "off")]), ["persistence warning"]);
        assert_eq!(trouble(&[("fsync", "off")]), ["durability fault"]);
        assert_eq!(trouble(&[("full_page_writes", "off")]), ["durability fault"]);
        assert_eq!(trouble(&[("in_recovery", "true")]), ["role fault"]);
        assert_eq!(trouble(&[("default_transaction_read_only", "on")]), ["role fault"]);
    }
}
