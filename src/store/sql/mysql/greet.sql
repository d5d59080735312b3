-- For this connection, whatever the server's defaults are: nothing is cut in silence, and a lock is waited for at most so many
-- seconds.
SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', SESSION innodb_lock_wait_timeout = ?
