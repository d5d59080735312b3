//! What the variables of a MySQL or MariaDB server tell about how it keeps what it has acknowledged.

use std::collections::BTreeMap;

use crate::store::Finding;

/// What is to be said of a server with these variables.
pub(super) fn judge(said: &BTreeMap<String, String>) -> Vec<Finding> {
    let word = |name: &str| said.get(name).map_or("", String::as_str);
    let is = |name: &str, wanted: &[&str]| wanted.iter().any(|wanted| word(name).eq_ignore_ascii_case(wanted));
    let mut findings = vec![Finding::ok("version", word("version"))];
    findings.push(if is("read_only", &["1", "ON"]) {
        let fix = "[store] url: name the primary; or SET GLOBAL read_only = OFF";
        Finding::fault("role", "read_only is on", "it refuses writes: nothing is claimed", fix)
    } else {
        Finding::ok("role", "it takes writes")
    });
    let flush = word("innodb_flush_log_at_trx_commit");
    findings.push(if flush == "1" {
        Finding::ok("persistence", "innodb_flush_log_at_trx_commit 1")
    } else {
        let effect = "a crash of the server loses what was answered last: a slot may be granted twice";
        let fix = "my.cnf: innodb_flush_log_at_trx_commit = 1";
        Finding::warning("persistence", format!("innodb_flush_log_at_trx_commit {flush}"), effect, fix)
    });
    if is("innodb_doublewrite", &["0", "OFF"]) {
        let effect = "a power cut may damage the tables: nothing is claimed";
        findings.push(Finding::warning(
            "durability",
            "innodb_doublewrite off",
            effect,
            "my.cnf: innodb_doublewrite = ON",
        ));
    }
    let logs = is("log_bin", &["1", "ON"]);
    findings.push(match (logs, word("sync_binlog")) {
        (false, _) => Finding::ok("binlog", "off: it has no replicas"),
        (true, "1") => Finding::ok("binlog", "sync_binlog 1"),
        (true, sync) => {
            let effect = "after a crash its replicas may lack what was answered last: a slot may be granted twice";
            Finding::warning("binlog", format!("sync_binlog {sync}"), effect, "my.cnf: sync_binlog = 1")
        }
    });
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Severity;

    fn trouble(changes: &[(&str, &str)]) -> Vec<String> {
        let healthy =
            [("version", "10.11"), ("read_only", "0"), ("innodb_flush_log_at_trx_commit", "1"), ("log_bin", "0")];
        let said = healthy.iter().chain(changes).map(|(name, word)| ((*name).to_owned(), (*word).to_owned())).collect();
        let bad = judge(&said).into_iter().filter(|finding| finding.severity > Severity::Ok);
        bad.map(|finding| format!("{} {}", finding.check, finding.severity.as_str())).collect()
    }

    #[test]
    fn each_variable_that_can_betray_the_guard_is_told_with_its_weight() {
        assert_eq!(trouble(&[]), [""; 0]);
        assert_eq!(trouble(&[("innodb_flush_log_at_trx_commit", "2")]), ["persistence warning"]);
        assert_eq!(trouble(&[("read_only", "1")]), ["role error"]);
        assert_eq!(trouble(&[("log_bin", "1"), ("sync_binlog", "0")]), ["binlog warning"]);
        assert_eq!(trouble(&[("log_bin", "1"), ("sync_binlog", "1")]), [""; 0]);
        assert_eq!(trouble(&[("innodb_doublewrite", "OFF")]), ["durability warning"]);
    }
}
