-- A statement that takes longer than so many milliseconds is given up, and a transaction in which nothing happens for so many
-- seconds is rolled back: a client that was stopped keeps no lock.
SET SESSION max_statement_time = ? / 1000, SESSION idle_transaction_timeout = ?
