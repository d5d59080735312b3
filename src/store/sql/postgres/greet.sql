-- For this connection: what takes longer than $1 milliseconds is given up, whatever the server's defaults are.
SELECT
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('default_transaction_read_only', 'off', false),
    set_config('statement_timeout', $1, false),
    set_config('lock_timeout', $1, false),
    set_config('idle_in_transaction_session_timeout', $1, false),
    set_config('client_min_messages', 'error', false)
