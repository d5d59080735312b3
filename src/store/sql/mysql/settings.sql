-- What the server says of how it keeps what it answers.
SELECT 'version' AS name, CAST(@@global.version AS CHAR) AS setting
UNION ALL SELECT 'read_only', CAST(@@global.read_only AS CHAR)
UNION ALL SELECT 'innodb_flush_log_at_trx_commit', CAST(@@global.innodb_flush_log_at_trx_commit AS CHAR)
UNION ALL SELECT 'log_bin', CAST(@@global.log_bin AS CHAR)
UNION ALL SELECT 'sync_binlog', CAST(@@global.sync_binlog AS CHAR)
UNION ALL SELECT 'innodb_doublewrite', CAST(@@global.innodb_doublewrite AS CHAR)
