-- The server's clock in epoch milliseconds. now() would be the transaction's beginning.
SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms
