-- The server's clock in epoch milliseconds. UNIX_TIMESTAMP() would go through the session's time zone.
SELECT timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(3)) DIV 1000 AS now_ms
