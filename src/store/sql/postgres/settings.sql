-- What the server says of how it keeps what it answers.
SELECT name::text AS name, setting::text AS setting
FROM pg_catalog.pg_settings
WHERE name IN (
    'server_version', 'synchronous_commit', 'fsync', 'full_page_writes', 'synchronous_standby_names',
    'default_transaction_read_only'
)
UNION ALL
SELECT 'in_recovery', pg_catalog.pg_is_in_recovery()::text
